import type { SourcePosition } from "./frames.ts";

/** Requests to the thread: first the source maps of some code, then positions in it. */
export type SourceMapRequest =
  | { type: "keep"; codeId: string; maps: readonly ModuleMap[] }
  | { type: "drop"; codeId: string }
  | { type: "find"; id: number; codeId: string; positions: readonly SourcePosition[] };

export interface SourceMapAnswer {
  id: number;
  positions: readonly (SourcePosition | undefined)[];
}

/** The source map of a module, as it was uploaded. */
export interface ModuleMap {
  module: string;
  content: Uint8Array;
}
