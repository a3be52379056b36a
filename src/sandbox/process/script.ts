let epoch = "";

/** For the test kit: sets the number of resets. It is part of ids in cells, because versions get the same ids again. */
export function setScriptEpoch(number: number): void {
  epoch = number === 0 ? "" : `~${number}`;
}

/** The id in cells of a version, whose own id may come again after the test kit has reset the platform. */
export const idInCells = (id: string): string => id + epoch;

/** A script that runs in cells. */
export interface CellScript {
  /** Id of one version; each upload has another. */
  id: string;
  /** The same for all versions: the key of quarantine. */
  owner: string;
  /** The account whose slots it uses. */
  accountId: string;
  /** The environment that it gets; see worker/. */
  profile: "snippet" | "script";
  mainModule: string;
  modules: readonly CellModule[];
  compatibilityDate: string;
  compatibilityFlags: readonly string[];
  /** CPU time of one run in milliseconds. */
  cpuMs: number;
  memoryBytes: number;
  /** Bindings that are plain values. */
  env: Readonly<Record<string, unknown>>;
  /** For the profile "script": the other bindings, which wrappers create, and the classes that the script exports. */
  bindings?: readonly CellBinding[];
  /** Whether it is a customer's script, to which other scripts dispatch. */
  isDispatched?: boolean;
  /** Whether it is only started, to try out an upload. Then it counts as no run of the customer. */
  isTrial?: boolean;
  classNames?: readonly string[];
  /** The exported classes of its Durable Objects. */
  objectClasses?: readonly string[];
  /** Whether its workflows are run: then the modules of workflows are added. */
  hasWorkflows?: boolean;
}

/** A binding in a script's `env`: the module that makes it inside the isolate. */
export interface CellBinding {
  name: string;
  /** The module of src/ that creates the binding, and its function for that. */
  module: string;
  factory: string;
  /** The class name that the binding shows to the script. */
  className: string;
  /** The argument of the function. */
  description: { name: string };
  /**
   * The parameter of the binding from the system worker: an entrypoint that calls another script in the same cell, or the
   * client of D1.
   */
  systemEntrypoint?: "D1" | "Dispatch" | "Objects" | "Service" | undefined;
}

export interface CellModule {
  name: string;
  kind: "js" | "cjs" | "text" | "data" | "json" | "wasm";
  content: string | Uint8Array;
}
