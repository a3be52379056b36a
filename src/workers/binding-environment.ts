import type { CellBinding } from "../sandbox/process/script.ts";
import type { Binding } from "./scripts/versions/bindings.ts";
import type { BindingRegistry } from "./binding-registry.ts";
import type { RuntimeScript } from "./scripts/runtime-script.ts";

/** The bindings that are plain values. */
export function plainEnv({ bindings, version }: RuntimeScript): Record<string, unknown> {
  const env: Record<string, unknown> = {};
  for (const binding of bindings) {
    if (binding.type === "plain_text" || binding.type === "secret_text") env[binding.name] = binding.text;
    else if (binding.type === "json") env[binding.name] = binding.json;
    else if (binding.type === "version_metadata") env[binding.name] = version;
  }
  return env;
}

const isPlain = ({ type }: Binding): boolean =>
  type === "plain_text" || type === "secret_text" || type === "json" || type === "version_metadata";

/** The bindings that wrappers create. */
export function madeBindings({ bindings }: RuntimeScript, registry: BindingRegistry): CellBinding[] {
  return bindings
    .filter((binding) => !isPlain(binding))
    .map((binding) => {
      const isolate = registry.find(binding.type)?.isolate;
      if (isolate === undefined) throw new Error(`Bindings of type ${binding.type} cannot be used here`);
      return { systemEntrypoint: undefined, ...isolate, name: binding.name, description: binding };
    });
}
