import type { Storage } from "../../platform/storage/storage.ts";
import type { Script, StoredBinding } from "./script.ts";
import type { Scripts } from "./scripts.ts";
import * as store from "./versions/store-versions.ts";

/** A script whose live version has a binding to another script. */
export interface Reference {
  name: string;
  kind: "service" | "dispatch_outbound" | "durable_object";
  binding: string;
  /** The dispatch namespace of a `dispatch_outbound`. */
  namespace: string | undefined;
}

/** A queue whose messages a script consumes. */
export interface ConsumedQueue {
  id: string;
  name: string;
  consumerId: string;
}

/** Finds the scripts of an account that use other scripts. */
export class References {
  readonly #storage: Storage;
  readonly #scripts: Scripts;

  /** The queues that a script of an account consumes. Set by the capability of queues, which this room cannot import. */
  consumedQueues: (accountId: string, scriptName: string) => ConsumedQueue[] = () => [];

  constructor(storage: Storage, scripts: Scripts) {
    this.#storage = storage;
    this.#scripts = scripts;
  }

  /** The account's other scripts that use a script. */
  async to(target: Script): Promise<Reference[]> {
    const others = this.#scripts.list({ accountId: target.accountId }).filter(({ id }) => id !== target.id);
    const names = new Map(others.map(({ id, name }) => [id, name]));
    const ids = others.flatMap(({ live }) => live.map(({ versionId }) => versionId));
    const versions = await store.containing(this.#storage.read, ids, JSON.stringify(target.name));
    return versions.flatMap(({ scriptId, content }) =>
      content.bindings.flatMap((binding) => referenceTo(target.name, names.get(scriptId)!, binding)),
    );
  }
}

function referenceTo(target: string, name: string, binding: StoredBinding): Reference[] {
  if (binding.type === "service" && binding.service === target)
    return [{ name, kind: "service", binding: binding.name, namespace: undefined }];
  if (binding.type === "dispatch_namespace" && binding.outbound?.worker.service === target)
    return [{ name, kind: "dispatch_outbound", binding: binding.name, namespace: binding.namespace }];
  if (binding.type === "durable_object_namespace" && binding.script_name === target)
    return [{ name, kind: "durable_object", binding: binding.name, namespace: undefined }];
  return [];
}
