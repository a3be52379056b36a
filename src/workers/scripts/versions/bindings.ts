import { z } from "zod";
import { validate } from "../../../control/api/validation.ts";
import { inputErrors, type DomainError } from "../../../platform/domain-error.ts";
import { suggest } from "../../../platform/util/suggest.ts";
import type { BindingRegistry } from "../../binding-registry.ts";
import { bindingName, idText, type BindingContext, type BindingType } from "../../binding-type.ts";
import type { Binding, InheritBinding } from "../../bindings.ts";
import { scriptErrors } from "../errors.ts";

const InheritSchema = z.strictObject({
  type: z.literal("inherit"),
  name: bindingName,
  old_name: bindingName.optional(),
  version_id: idText.optional(),
});

const bindingsMax = 512;

/** Parses the bindings of an upload. Unsupported types are refused by name. */
export function readBindings(
  values: readonly unknown[],
  where: string,
  { schemas }: BindingRegistry,
): (Binding | InheritBinding)[] {
  if (values.length > bindingsMax)
    throw inputErrors.invalid(
      `Expected at most ${bindingsMax} bindings but received ${values.length}`,
      `/${where}`,
    );
  const names = new Set<string>();
  return values.map((value, i) => {
    const { type: typeName, name } = (value ?? {}) as { type?: unknown; name?: unknown };
    const schema =
      typeName === "inherit"
        ? InheritSchema
        : typeof typeName === "string"
          ? schemas.get(typeName)
          : undefined;
    if (schema === undefined)
      throw unsupportedType([...schemas.keys(), "inherit"], typeName, name, `/${where}/${i}/type`);
    const binding = validate(schema, value, `${where}/${i}`) as Binding | InheritBinding;
    if (names.has(binding.name)) throw scriptErrors.twoBindings(binding.name, `/${where}/${i}/name`);
    names.add(binding.name);
    return binding;
  });
}

/** Products behind the public API's other binding types, which this platform does not have. */
const absentProducts: Readonly<Record<string, string>> = {
  ai: "Workers AI",
  ai_search: "AI Search",
  ai_search_namespace: "AI Search",
  analytics_engine: "Workers Analytics Engine",
  browser: "Browser Rendering",
  flagship: "Flagship",
  hyperdrive: "Hyperdrive",
  logfwdr: "Log forwarding",
  media: "Media Transformations",
  mtls_certificate: "mTLS Certificates",
  pipelines: "Pipelines",
  r2_bucket: "R2",
  ratelimit: "Rate limiting",
  secrets_store_secret: "Secrets Store",
  send_email: "Email Routing",
  stream: "Stream",
  vectorize: "Vectorize",
  vpc_network: "Workers VPC",
  vpc_service: "Workers VPC",
  worker_loader: "Dynamic Workers",
};

function unsupportedType(
  known: readonly string[],
  typeName: unknown,
  name: unknown,
  pointer: string,
): DomainError {
  if (typeof typeName !== "string")
    return inputErrors.invalid(`Expected a type for the binding ${JSON.stringify(name ?? null)}`, pointer);
  const product = Object.hasOwn(absentProducts, typeName) ? absentProducts[typeName] : undefined;
  if (product !== undefined) {
    const what = `the binding ${JSON.stringify(name ?? null)} has the type "${typeName}"`;
    return scriptErrors.absentProduct(product, what, pointer);
  }
  const meant = suggest(typeName, known);
  const hint = meant === undefined ? `one of ${known.join(", ")}` : `"${meant}"`;
  return scriptErrors.unsupportedBinding(JSON.stringify(name ?? null), typeName, hint, pointer);
}

/** Collects the errors of all bindings to missing resources. */
export async function missingResources(
  bindings: readonly Binding[],
  registry: BindingRegistry,
  script: Omit<BindingContext, "resources">,
): Promise<DomainError[]> {
  const context = { ...script, resources: registry };
  const faults = await Promise.all(
    bindings.map(async (binding) => {
      const type: BindingType | undefined = registry.find(binding.type)?.type;
      const fault = await type?.check?.(binding, context);
      return fault === undefined ? [] : [scriptErrors.missingResource(binding.name, binding.type, fault)];
    }),
  );
  return faults.flat();
}
