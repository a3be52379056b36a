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
  /** Read by the wrapper of the script's profile. */
  env: Readonly<Record<string, unknown>>;
}

export interface CellModule {
  name: string;
  kind: "js" | "cjs" | "text" | "data" | "json" | "wasm";
  content: string | Uint8Array;
}
