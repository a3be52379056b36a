import { binding, declare } from "../../declaration.ts";
import type { dispatchNamespaceType } from "./binding-type.ts";

/** Dispatch namespaces. */
export const declaration = declare({
  bindings: {
    dispatch_namespace: binding<typeof dispatchNamespaceType>(),
  },
});
