import { z } from "zod";
import { validate } from "../../../control/api/validation.ts";
import { inputErrors, type DomainError } from "../../../platform/domain-error.ts";
import { suggest } from "../../../platform/util/suggest.ts";
import { scriptErrors } from "../errors.ts";

/** Resources that a binding may refer to. */
export interface BindingResources {
  /** Whether the account has the resource of a binding of this type. */
  exists(type: BindingTypeName, accountId: string, name: string): Promise<boolean>;
}

/** The script that a binding belongs to. */
export interface BindingContext {
  accountId: string;
  /** Undefined for a customer's script, to which no binding can refer. */
  scriptName: string | undefined;
  resources: BindingResources;
  hasAssets: boolean;
  /** Classes that the script exports; undefined if the source does not show them. */
  classNames: ReadonlySet<string> | undefined;
}

export const secretText = z.string().max(5 * 1024);
/** An id from outside, in a form that may be looked up. */
export const idText = z.string().regex(/^[\w-]{1,64}$/);
/** `__proto__` cannot be set as a property. */
export const bindingName = z.string().regex(/^(?!__proto__$)[A-Za-z_$][\w$]{0,63}$/);
const scriptName = z.string().min(1).max(255);

type Fault = string | undefined;

/** A binding type: its fields, and a check that returns the missing resource, if any. */
interface BindingType<S extends z.ZodRawShape = z.ZodRawShape> {
  fields: S;
  check?(binding: z.output<z.ZodObject<S>>, context: BindingContext): Promise<Fault>;
}
const type = <S extends z.ZodRawShape>(definition: BindingType<S>): BindingType<S> => definition;

async function missingScript(name: string, { accountId, scriptName, resources }: BindingContext) {
  if (name === scriptName || (await resources.exists("service", accountId, name))) return undefined;
  return `the script "${name}", which does not exist on this account`;
}

/** All supported binding types. */
export const bindingTypes = {
  plain_text: type({ fields: { text: secretText } }),
  secret_text: type({ fields: { text: secretText } }),
  json: type({ fields: { json: z.json() } }),
  version_metadata: type({ fields: {} }),
  images: type({ fields: {} }),
  kv_namespace: type({
    fields: { namespace_id: idText },
    async check({ namespace_id }, { accountId, resources }) {
      if (await resources.exists("kv_namespace", accountId, namespace_id)) return undefined;
      return `the KV namespace "${namespace_id}", which does not exist on this account`;
    },
  }),
  dispatch_namespace: type({
    fields: {
      namespace: z.string().min(1).max(255),
      outbound: z
        .strictObject({
          worker: z.strictObject({
            service: scriptName,
            environment: z.literal("production").optional(),
            entrypoint: z.string().max(255).optional(),
          }),
          params: z
            .array(z.strictObject({ name: bindingName }))
            .max(64)
            .optional(),
        })
        .optional(),
    },
    async check({ namespace, outbound }, context) {
      if (!(await context.resources.exists("dispatch_namespace", context.accountId, namespace)))
        return `the dispatch namespace "${namespace}", which does not exist on this account`;
      return outbound === undefined ? undefined : missingScript(outbound.worker.service, context);
    },
  }),
  service: type({
    fields: {
      service: scriptName,
      environment: z.literal("production").optional(),
      entrypoint: z.string().max(255).optional(),
    },
    check: async ({ service }, context) => missingScript(service, context),
  }),
  queue: type({
    fields: {
      queue_name: z.string().min(1).max(63),
      delivery_delay: z.coerce.number().int().min(0).max(43_200).optional(),
    },
    async check({ queue_name }, { accountId, resources }) {
      if (await resources.exists("queue", accountId, queue_name)) return undefined;
      return `the queue "${queue_name}", which does not exist on this account`;
    },
  }),
  workflow: type({
    fields: {
      workflow_name: z.string().min(1).max(64),
      class_name: z.string().min(1).max(255).optional(),
      script_name: scriptName.optional(),
    },
    // Clients create the workflow after the upload, so only its class can be checked here.
    async check({ class_name, script_name }, context) {
      if (script_name !== undefined && script_name !== context.scriptName)
        return missingScript(script_name, context);
      if (class_name === undefined || context.classNames?.has(class_name) !== false) return undefined;
      return `the class "${class_name}", which the script does not export`;
    },
  }),
  // Its class may come into being with the upload, so the namespace is found in the upload's transaction.
  durable_object_namespace: type({
    fields: {
      class_name: z.string().min(1).max(255).optional(),
      script_name: scriptName.optional(),
      environment: z.literal("production").optional(),
      namespace_id: z
        .string()
        .regex(/^[0-9a-f]{32}$/)
        .optional(),
    },
  }),
  d1: type({
    // Older clients send `database_id`.
    fields: { id: idText },
    async check({ id }, { accountId, resources }) {
      if (await resources.exists("d1", accountId, id)) return undefined;
      return `the D1 database "${id}", which does not exist on this account`;
    },
  }),
  assets: type({
    fields: {},
    check: async (_, { hasAssets }) =>
      hasAssets ? undefined : "static assets, but the upload has neither metadata.assets nor keep_assets",
  }),
} as const;

export type BindingTypeName = keyof typeof bindingTypes;
type Fields<T extends BindingTypeName> = z.output<z.ZodObject<(typeof bindingTypes)[T]["fields"]>>;
export type BindingOf<T extends BindingTypeName> = { type: T; name: string } & Fields<T>;
/** A binding in the form of the API, with secrets in clear text. */
export type Binding = { [T in BindingTypeName]: BindingOf<T> }[BindingTypeName];

/** In an upload: takes the binding of an earlier version. */
export interface InheritBinding {
  type: "inherit";
  name: string;
  old_name?: string | undefined;
  version_id?: string | undefined;
}

const schemas = new Map<string, z.ZodType>(
  Object.entries(bindingTypes).map(([name, { fields }]) => [
    name,
    z.strictObject({ type: z.literal(name), name: bindingName, ...fields }),
  ]),
);
schemas.set(
  "inherit",
  z.strictObject({
    type: z.literal("inherit"),
    name: bindingName,
    old_name: bindingName.optional(),
    version_id: idText.optional(),
  }),
);

const bindingsMax = 512;

/** Parses the bindings of an upload. Unsupported types are refused by name. */
export function readBindings(values: readonly unknown[], where: string): (Binding | InheritBinding)[] {
  if (values.length > bindingsMax)
    throw inputErrors.invalid(
      `Expected at most ${bindingsMax} bindings but received ${values.length}`,
      `/${where}`,
    );
  const names = new Set<string>();
  return values.map((value, i) => {
    const { type: typeName, name } = (value ?? {}) as { type?: unknown; name?: unknown };
    const schema = typeof typeName === "string" ? schemas.get(typeName) : undefined;
    if (schema === undefined) throw unsupportedType(typeName, name, `/${where}/${i}/type`);
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

function unsupportedType(typeName: unknown, name: unknown, pointer: string): DomainError {
  if (typeof typeName !== "string")
    return inputErrors.invalid(`Expected a type for the binding ${JSON.stringify(name ?? null)}`, pointer);
  const product = Object.hasOwn(absentProducts, typeName) ? absentProducts[typeName] : undefined;
  if (product !== undefined) {
    const what = `the binding ${JSON.stringify(name ?? null)} has the type "${typeName}"`;
    return scriptErrors.absentProduct(product, what, pointer);
  }
  const meant = suggest(typeName, schemas.keys());
  const hint = meant === undefined ? `one of ${[...schemas.keys()].join(", ")}` : `"${meant}"`;
  return scriptErrors.unsupportedBinding(JSON.stringify(name ?? null), typeName, hint, pointer);
}

/** Collects the errors of all bindings to missing resources. */
export async function missingResources(
  bindings: readonly Binding[],
  context: BindingContext,
): Promise<DomainError[]> {
  const faults = await Promise.all(
    bindings.map(async (binding) => {
      const definition: BindingType = bindingTypes[binding.type];
      const fault = await definition.check?.(binding, context);
      return fault === undefined ? [] : [scriptErrors.missingResource(binding.name, binding.type, fault)];
    }),
  );
  return faults.flat();
}
