import type { CellBinding } from "../cells/script.ts";
import type { Binding, BindingTypeName } from "../scripts/bindings.ts";
import type { RuntimeScript } from "../scripts/runtime-script.ts";

/** Bindings that are made in the script's own isolate: by which function of which module of src/. */
const made: { [Type in BindingTypeName]?: readonly [module: string, factory: string] } = {
  dispatch_namespace: ["runtime/worker/dispatch.js", "dispatchNamespace"],
  service: ["runtime/worker/service.js", "service"],
  kv_namespace: ["kv/worker/binding.js", "kvNamespace"],
  assets: ["assets/worker/binding.js", "assets"],
  images: ["images/worker/binding.js", "imagesBinding"],
  queue: ["queues/worker/binding.js", "queueBinding"],
  workflow: ["workflows/worker/binding.js", "workflowBinding"],
};

const ways: { [Type in BindingTypeName]?: CellBinding["way"] } = {
  dispatch_namespace: "Dispatch",
  service: "Service",
};

/** The part of a script's `env` that is plain values. */
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

/** The part that wrappers of ours make. */
export function madeBindings({ bindings }: RuntimeScript): CellBinding[] {
  return bindings
    .filter((binding) => !isPlain(binding))
    .map((binding) => {
      const [module, factory] = made[binding.type] ?? [];
      if (module === undefined || factory === undefined)
        throw new Error(`Bindings of type ${binding.type} cannot be used here`);
      return {
        name: binding.name,
        module,
        factory,
        description: binding,
        way: ways[binding.type],
      };
    });
}
