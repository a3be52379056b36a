import type { AssetConfig } from "../assets/config.ts";
import type { Binding } from "./bindings.ts";

export const moduleKinds = ["js", "cjs", "text", "data", "json", "wasm"] as const;
export type ModuleKind = (typeof moduleKinds)[number];

export interface Module {
  name: string;
  kind: ModuleKind;
  /** Bytes for `data` and `wasm`, text for the others. */
  content: string | Uint8Array;
}

/** Static files of a version: which manifest, and how they are served. */
export interface ScriptAssets {
  manifest: string;
  config: AssetConfig;
}

/** All that is needed to run one version of a script. It never changes: another upload or setting is another id. */
export interface RuntimeScript {
  id: string;
  accountId: string;
  name: string;
  /** The dispatch namespace of a customer script. */
  namespace?: string;
  /** "" where there are static files only. */
  mainModule: string;
  /** Empty where there are static files only: what they do not answer is not found. */
  modules: readonly Module[];
  compatibilityDate: string;
  compatibilityFlags: readonly string[];
  /** With secrets in clear. */
  bindings: readonly Binding[];
  limits?: { cpuMs?: number; subRequests?: number };
  assets?: ScriptAssets;
  /** What `version_metadata` shows. */
  version: { id: string; tag: string; timestamp: string };
  /** Event handlers of the default export, as far as they can be told from the source. */
  handlers: readonly string[];
  /** Exported classes: entrypoints and workflows. */
  namedHandlers: readonly NamedHandler[];
}

export interface NamedHandler {
  name: string;
  handlers: string[];
}

/** What the edge needs to know of a script on each request; in memory. */
export interface LiveScript {
  scriptId: string;
  accountId: string;
  name: string;
  /** The version for this request, chosen by the deployment's percentages: the id of its `RuntimeScript`. */
  versionId: string;
}
