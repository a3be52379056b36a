import type { ScriptAssets } from "../assets/config.ts";
import type { Binding } from "../bindings.ts";

export const moduleKinds = ["js", "cjs", "text", "data", "json", "wasm"] as const;
export type ModuleKind = (typeof moduleKinds)[number];

export interface Module {
  name: string;
  kind: ModuleKind;
  /** Bytes for `data` and `wasm`, text otherwise. */
  content: string | Uint8Array;
}

/** Everything needed to run one version of a script. Never changes: another upload or setting has another id. */
export interface RuntimeScript {
  id: string;
  /** The id of the script. Another script of the same name has another id. */
  scriptId: string;
  accountId: string;
  name: string;
  /** The dispatch namespace of a customer's script. */
  namespace?: string;
  /** Empty for a script of static assets only. */
  mainModule: string;
  /** Empty for a script of static assets only: other paths are then not found. */
  modules: readonly Module[];
  compatibilityDate: string;
  compatibilityFlags: readonly string[];
  /** With secrets decrypted. */
  bindings: readonly Binding[];
  limits?: { cpuMs?: number; subRequests?: number };
  assets?: ScriptAssets;
  /** The value of a `version_metadata` binding. */
  version: { id: string; tag: string; timestamp: string };
  /** Event handlers of the default export, as far as the source shows them. */
  handlers: readonly string[];
  /** Exported classes: entrypoints and workflows. */
  namedHandlers: readonly NamedHandler[];
  /** Classes with Durable Objects, and the time that a busy object may go on with the previous version. */
  objectClasses?: readonly string[];
  codeUpdateDelayMs?: number;
  /** The id of the source maps, if there are any. */
  sourceMapsId?: string;
}

export interface NamedHandler {
  name: string;
  handlers: string[];
}

/** The part of a script that the edge needs for each request; in memory. */
export interface LiveScript {
  scriptId: string;
  accountId: string;
  name: string;
  /** The version for this request, chosen by the deployment's percentages: the id of its `RuntimeScript`. */
  versionId: string;
}

const ownerPrefix = "script ";

/** A script's owner in cells. It has the id, so that a script does not inherit the quarantine of a deleted one. */
export const ownerInCells = (
  script: Pick<RuntimeScript, "accountId" | "namespace" | "name" | "scriptId">,
): string => `${ownerPrefix}${script.accountId}/${script.namespace ?? ""}/${script.name} ${script.scriptId}`;

/** The id of the account of an owner in cells. */
export const accountOfOwner = (owner: string): string => owner.slice(ownerPrefix.length, owner.indexOf("/"));

/** The id of the script of an owner in cells. */
export const scriptOfOwner = (owner: string): string => owner.slice(owner.lastIndexOf(" ") + 1);
