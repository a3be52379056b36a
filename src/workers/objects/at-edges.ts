import { capability } from "../../capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { sandbox } from "../../sandbox/capability.ts";
import type { ShownBinding } from "../bindings-in-main.ts";
import { runtime } from "../runtime/capability.ts";
import { objectNamespaceType } from "./binding-type.ts";
import { objectsInMain } from "./nodes/edge-process-objects.ts";

/** The binding, as scripts see it. */
export const shown: ShownBinding<"durable_object_namespace"> = {
  type: objectNamespaceType,
  isolate: {
    module: "workers/objects/worker/binding.js",
    factory: "objectNamespace",
    className: "DurableObjectNamespace",
    systemEntrypoint: "Objects",
  },
};

/** In edge processes: passes calls of objects to main, which has the objects' cells and files. */
export const objectsAtEdges = capability({
  name: "objects in main",
  processes: "edge",
  needs: [processes, outbound, sandbox, runtime],
  create({ calls, viaHeader, tunnels, ...needed }) {
    needed.runtime.objects = objectsInMain(calls!, viaHeader, tunnels, needed.outbound);
    return {};
  },
  bindings: () => ({ durable_object_namespace: shown }),
});
