import { bindingsInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { workflowType } from "./binding-type.ts";

/** The binding, as scripts see it. */
export const shown: ShownBinding<"workflow"> = {
  type: workflowType,
  isolate: {
    module: "products/workflows/worker/binding.js",
    factory: "workflowBinding",
    className: "Workflow",
  },
};

/** In edge processes: passes the binding's calls to main. */
export const workflowsAtEdges = bindingsInMain("workflow", shown);
