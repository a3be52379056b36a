import { bindingsInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { queueType } from "./binding-type.ts";

/** The binding, as scripts see it. */
export const shown: ShownBinding<"queue"> = {
  type: queueType,
  isolate: {
    module: "products/queues/worker/binding.js",
    factory: "queueBinding",
    className: "WorkerQueue",
  },
};

/** In edge processes: passes the binding's calls to main. */
export const queuesAtEdges = bindingsInMain("queue", shown);
