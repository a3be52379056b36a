import type { Focus, Probe } from "../image.ts";
import type { Transform } from "../options.ts";
import type { Output } from "../recipe.ts";

/** One picture put on another. */
export interface DrawOptions {
  top?: number;
  left?: number;
  bottom?: number;
  right?: number;
  opacity?: number;
  repeat?: true | "x" | "y";
  composite?: "over" | "in" | "atop" | "out" | "xor" | "lighter";
}

export type Step =
  | { kind: "transform"; transform: Transform }
  | { kind: "draw"; overlay: Picture; options: DrawOptions };

/** A file and what is done with it, step by step. */
export interface Picture {
  path: string;
  /** A smaller copy, already upright, that the pixels are read from; everything else is asked of the file. */
  mezzanine?: string | undefined;
  probe: Probe;
  steps: Step[];
  /** Where a crop by what is in the picture goes, when that has been found before. */
  focus: Focus | null;
}

export interface Job {
  picture: Picture;
  output: Output;
  timeLimitSeconds: number;
  /** The file that the result is for; without one, or when it cannot be written, the result comes as bytes. */
  target: string | undefined;
}

export interface Result {
  /** Undefined when they are in the target. */
  bytes: Uint8Array | undefined;
  sizeBytes: number;
  width: number;
  height: number;
  /** Found in the picture by this job, in fractions of the upright image. */
  focus: Focus | null;
}

/** What the process of the engine and its parent say to each other. */
export type Request = { id: number; job: Job };
export type Reply =
  | { id: number; result: Result }
  /** `undecodable`: the source; `invalid`: the options, for this source; `time`: over the limit. */
  | { id: number; fault: { kind: "undecodable" | "invalid" | "time" | "internal"; message: string } };
