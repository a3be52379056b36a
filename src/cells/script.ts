/** Code that runs in a cell. */
export interface CellScript {
  /** One version of it: an upload makes another. */
  id: string;
  /** Whose it is, over all versions: what is trusted or suspected. */
  owner: string;
  /** Which environment it gets; see worker/. */
  profile: "snippet" | "script";
  mainModule: string;
  modules: readonly CellModule[];
  compatibilityDate: string;
  compatibilityFlags: readonly string[];
  /** CPU time of one run. */
  cpuMs: number;
  memoryBytes: number;
  /** Plain values. */
  env: Readonly<Record<string, unknown>>;
  /** Its other bindings, which wrappers of ours make, and the classes that it exports. For the profile "script". */
  bindings?: readonly CellBinding[];
  /** Whether it is a customer's, which other scripts dispatch to. */
  isDispatched?: boolean;
  classNames?: readonly string[];
  /** Whether workflows that it exports are run: then it has what they need beside it. */
  hasWorkflows?: boolean;
}

export interface CellBinding {
  name: string;
  /** The module of src/ that makes the binding, and the function in it. */
  module: string;
  factory: string;
  /** Handed to the function. */
  description: unknown;
  /** Where it also leads to another script in the same cell: the system worker's entrypoint for that. */
  way?: "Dispatch" | "Service" | undefined;
}

export interface CellModule {
  name: string;
  kind: "js" | "cjs" | "text" | "data" | "json" | "wasm";
  content: string | Uint8Array;
}
