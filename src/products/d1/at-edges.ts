import { bindingsInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { d1Type } from "./binding-type.ts";

/** The binding, as scripts see it. */
export const shown: ShownBinding<"d1"> = {
  type: d1Type,
  isolate: {
    module: "products/d1/worker/binding.js",
    factory: "d1Database",
    className: "D1Database",
    systemEntrypoint: "D1",
  },
};

/** In edge processes: passes the binding's calls to main. */
export const d1AtEdges = bindingsInMain("d1", shown);
