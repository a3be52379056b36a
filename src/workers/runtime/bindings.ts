import type { CellBinding } from "../../sandbox/process/script.ts";
import type { Binding, BindingTypeName } from "../scripts/versions/bindings.ts";
import type { RuntimeScript } from "../scripts/runtime-script.ts";

/**
 * Bindings that are created in the script's isolate: the module of src/, its function, and the class name
 * that scripts see.
 */
const made: { [Type in BindingTypeName]?: readonly [module: string, factory: string, className: string] } = {
  dispatch_namespace: ["workers/runtime/worker/dispatch.js", "dispatchNamespace", "DispatchNamespace"],
  service: ["workers/runtime/worker/service.js", "service", "Fetcher"],
  kv_namespace: ["products/kv/worker/binding.js", "kvNamespace", "KvNamespace"],
  assets: ["workers/assets/worker/binding.js", "assets", "Fetcher"],
  images: ["products/images/worker/binding.js", "imagesBinding", "ImagesBinding"],
  queue: ["products/queues/worker/binding.js", "queueBinding", "WorkerQueue"],
  workflow: ["products/workflows/worker/binding.js", "workflowBinding", "Workflow"],
};

const systemEntrypoints: { [Type in BindingTypeName]?: CellBinding["systemEntrypoint"] } = {
  dispatch_namespace: "Dispatch",
  service: "Service",
};

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
export function madeBindings({ bindings }: RuntimeScript): CellBinding[] {
  return bindings
    .filter((binding) => !isPlain(binding))
    .map((binding) => {
      const [module, factory, className] = made[binding.type] ?? [];
      if (module === undefined || factory === undefined || className === undefined)
        throw new Error(`Bindings of type ${binding.type} cannot be used here`);
      return {
        name: binding.name,
        module,
        factory,
        className,
        description: binding,
        systemEntrypoint: systemEntrypoints[binding.type],
      };
    });
}
