import { bindingsInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { kvNamespaceType } from "./binding-type.ts";

/** The binding, as scripts see it. */
export const shown: ShownBinding<"kv_namespace"> = {
  type: kvNamespaceType,
  isolate: { module: "products/kv/worker/binding.js", factory: "kvNamespace", className: "KvNamespace" },
};

/** In edge processes: passes the binding's calls to main. */
export const kvAtEdges = bindingsInMain("kv_namespace", shown);
