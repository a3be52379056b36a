import type { CellBinding } from "../sandbox/process/script.ts";
import type { BindingDeclaration, BindingRegistry } from "./binding-registry.ts";
import type { Binding, BindingTypeName } from "./bindings.ts";
import type { RuntimeScript } from "./scripts/runtime-script.ts";

/** How a script sees the bindings of a type. */
interface Shown {
  isolate?: BindingDeclaration<BindingTypeName>["isolate"];
  value?(binding: Binding, script: RuntimeScript): unknown;
}
const shown = ({ type }: Binding, registry: BindingRegistry): Shown | undefined => registry.find(type);

/** The bindings that are plain values. */
export function plainEnv(script: RuntimeScript, registry: BindingRegistry): Record<string, unknown> {
  const env: Record<string, unknown> = {};
  for (const binding of script.bindings) {
    const type = shown(binding, registry);
    if (type?.value !== undefined) env[binding.name] = type.value(binding, script);
  }
  return env;
}

/** The bindings that wrappers create. */
export function madeBindings({ bindings }: RuntimeScript, registry: BindingRegistry): CellBinding[] {
  return bindings
    .filter((binding) => shown(binding, registry)?.value === undefined)
    .map((binding) => {
      const isolate = shown(binding, registry)?.isolate;
      if (isolate === undefined) throw new Error(`Bindings of type ${binding.type} cannot be used here`);
      return { systemEntrypoint: undefined, ...isolate, name: binding.name, description: binding };
    });
}
