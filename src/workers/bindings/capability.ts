import { capability } from "../../capability.ts";
import { BindingRegistry } from "./registry.ts";

/** What scripts can bind: the types of all capabilities. */
export const bindings = capability({
  name: "bindings",
  needs: [],
  create: () => ({ bindings: new BindingRegistry() }),
  load: (services, contributions) => services.bindings.set(contributions.bindings),
});
