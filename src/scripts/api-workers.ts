import { z } from "zod";
import { listOperation, operation, type Operation } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime } from "../util/ids.ts";
import { readJson } from "../api/body.ts";
import { deleteScript } from "./api-code.ts";
import { bindingName, readBindings, type Binding, type InheritBinding } from "./bindings.ts";
import { AnnotationsSchema, CompatibilityDate, CompatibilityFlags } from "./metadata.ts";
import { accountPlace, authorOf, editAccess, readAccess, scriptOf, type AnyCall } from "./place.ts";
import { ScriptSchema, scriptResource, TimeSchema, VersionSchema, versionResource } from "./resources.ts";
import { scriptErrors, type Script, type StoredBinding } from "./script.ts";

const base = "/accounts/{account_id}/workers";
const LooseObject = z.record(z.string(), z.unknown());
const NamedSchema = z.object({ id: z.string(), name: z.string() });

const WorkerSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    created_on: TimeSchema,
    updated_on: TimeSchema,
    deployed_on: TimeSchema.nullable(),
    logpush: z.boolean(),
    observability: LooseObject,
    tags: z.array(z.string()),
    tail_consumers: z.array(z.unknown()),
    subdomain: z.object({
      enabled: z.boolean(),
      previews_enabled: z.boolean(),
      url: z.string().optional(),
    }),
    references: z.object({
      workers: z.array(NamedSchema),
      dispatch_namespace_outbounds: z.array(
        z.object({
          namespace_id: z.string(),
          namespace_name: z.string(),
          worker_id: z.string(),
          worker_name: z.string(),
        }),
      ),
      domains: z.array(
        z.object({
          id: z.string(),
          certificate_id: z.string(),
          hostname: z.string(),
          zone_id: z.string(),
          zone_name: z.string(),
        }),
      ),
    }),
  })
  .meta({ id: "Worker" });

const VersionPatchSchema = z.strictObject({
  env: z.record(bindingName, z.record(z.string(), z.unknown()).nullable()).optional(),
  annotations: AnnotationsSchema.optional(),
  compatibility_date: CompatibilityDate.optional(),
  compatibility_flags: CompatibilityFlags.optional(),
});
const patchBytesMax = 4 * 1024 * 1024;

/** Bindings by name: those that are given replace others, null takes one away. */
function patchedBindings(
  bindings: readonly StoredBinding[],
  env: NonNullable<z.output<typeof VersionPatchSchema>["env"]>,
): (Binding | InheritBinding)[] {
  const kept = bindings
    .filter(({ name }) => !Object.hasOwn(env, name))
    .map(({ name }) => ({ type: "inherit", name }));
  const given = Object.entries(env).flatMap(([name, binding]) =>
    binding === null ? [] : [{ name, ...binding }],
  );
  return readBindings([...kept, ...given], "body/env");
}

/** A script is found by its name, or by its id. */
function byNameOrId(call: AnyCall, text: string): Script {
  const owner = accountPlace.owner(call);
  const { scripts } = call.services;
  const found = scripts.find(owner, text) ?? scripts.list(owner).find(({ id }) => id === text);
  if (found === undefined) throw scriptErrors.notFound(owner, text);
  return found;
}

async function workerResource(call: AnyCall, script: Script): Promise<z.input<typeof WorkerSchema>> {
  const { account, services } = call;
  const [subdomain, deployments, users] = await Promise.all([
    services.subdomains.of(account),
    services.deployments.list(script),
    services.references.to(script),
  ]);
  const url = subdomain === null ? undefined : services.scriptRouter.urlOf(script.name, subdomain);
  const withId = users.map((user) => ({
    ...user,
    id: services.scripts.get(accountPlace.owner(call), user.name).id,
  }));
  return {
    id: script.id,
    name: script.name,
    created_on: isoTime(script.createdOn),
    updated_on: isoTime(script.modifiedOn),
    deployed_on: deployments[0] === undefined ? null : isoTime(deployments[0].createdOn),
    logpush: script.settings.logpush,
    observability: script.settings.observability ?? { enabled: false },
    tags: [...script.tags],
    tail_consumers: [...(script.settings.tailConsumers ?? [])],
    subdomain: {
      enabled: script.subdomainEnabled,
      previews_enabled: script.previewsEnabled,
      ...(url === undefined ? {} : { url }),
    },
    references: {
      workers: withId.flatMap(({ kind, id, name }) => (kind === "service" ? [{ id, name }] : [])),
      dispatch_namespace_outbounds: withId.flatMap(({ id, name, namespace }) =>
        namespace === undefined
          ? []
          : [
              {
                namespace_id: services.namespaces.find(account.id, namespace)?.id ?? "",
                namespace_name: namespace,
                worker_id: id,
                worker_name: name,
              },
            ],
      ),
      domains: services.domains
        .list(account.id)
        .filter(({ service }) => service === script.name)
        .map(({ id, certId, hostname, zoneId }) => ({
          id,
          certificate_id: certId,
          hostname,
          zone_id: zoneId,
          zone_name: services.zones.find(zoneId)?.name ?? "",
        })),
    },
  };
}

const EnvironmentSchema = z.object({
  environment: z.literal("production"),
  created_on: TimeSchema,
  modified_on: TimeSchema,
  script: ScriptSchema,
});
const ServiceSchema = z
  .object({
    id: z.string(),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    default_environment: EnvironmentSchema,
    environments: z.array(EnvironmentSchema),
  })
  .meta({ id: "ScriptService" });

const ReferenceSchema = z.object({
  service: z.string(),
  environment: z.literal("production"),
  name: z.string(),
});

/** The same scripts as other parts of the clients see them. */
export const workerOperations: readonly Operation[] = [
  operation({
    id: "worker_get",
    method: "GET",
    path: `${base}/workers/{worker_name}`,
    summary: "Get a script by its name or id, with its URL and what uses it",
    access: readAccess,
    result: WorkerSchema,
    handle: async (call) => workerResource(call, byNameOrId(call, call.params["worker_name"]!)),
  }),
  operation({
    id: "worker_version_patch",
    method: "PATCH",
    path: `${base}/workers/{worker_name}/versions/latest`,
    summary: "Make a version from the latest one by a merge patch, without putting it to work",
    access: editAccess,
    query: z.object({ deploy: z.enum(["true", "false"]).default("false") }),
    body: VersionPatchSchema,
    bodyKind: "own",
    acceptAnyContentType: true,
    result: VersionSchema,
    async handle(call) {
      const patch = await readJson(call.incoming, VersionPatchSchema, patchBytesMax);
      const { name } = byNameOrId(call, call.params["worker_name"]!);
      const { env } = patch;
      const { version } = await call.services.versions.revise(
        accountPlace.owner(call),
        name,
        authorOf(call),
        ({ content }) => ({
          compatibilityDate: patch.compatibility_date,
          compatibilityFlags: patch.compatibility_flags,
          annotations: patch.annotations,
          bindings: env && patchedBindings(content.bindings, env),
          deploy: call.query.deploy === "true",
        }),
      );
      return versionResource(version);
    },
  }),
  operation({
    id: "service_get",
    method: "GET",
    path: `${base}/services/{script_name}`,
    summary: "Get a script with its one environment",
    access: readAccess,
    result: ServiceSchema,
    async handle(call) {
      const script = scriptOf(accountPlace, call);
      const environment: z.input<typeof EnvironmentSchema> = {
        environment: "production",
        created_on: isoTime(script.createdOn),
        modified_on: isoTime(script.modifiedOn),
        script: scriptResource(script, await call.services.versions.current(script)),
      };
      return {
        id: script.name,
        created_on: environment.created_on,
        modified_on: environment.modified_on,
        default_environment: environment,
        environments: [environment],
      };
    },
  }),
  operation({
    id: "service_delete",
    method: "DELETE",
    path: `${base}/services/{script_name}`,
    summary: "Delete a script with all of its versions",
    access: editAccess,
    query: z.object({ force: z.enum(["true", "false"]).optional() }),
    result: z.null(),
    handle: async (call) => deleteScript(accountPlace, call, call.query.force === "true"),
  }),
  operation({
    id: "script_references",
    method: "GET",
    path: `${accountPlace.path}/{script_name}/references`,
    summary: "List the scripts that use a script, and those that it uses",
    access: readAccess,
    result: z.object({
      services: z.object({ incoming: z.array(ReferenceSchema), outgoing: z.array(ReferenceSchema) }),
      durable_objects: z.array(z.never()),
      dispatch_outbounds: z.array(
        z.object({ service: z.string(), environment: z.literal("production"), namespace: z.string() }),
      ),
    }),
    async handle(call) {
      const { references, versions } = call.services;
      const script = scriptOf(accountPlace, call);
      const [users, { content }] = await Promise.all([references.to(script), versions.current(script)]);
      const environment = "production" as const;
      return {
        services: {
          incoming: users.flatMap(({ kind, name, binding }) =>
            kind === "service" ? [{ service: name, environment, name: binding }] : [],
          ),
          outgoing: content.bindings.flatMap((binding) =>
            binding.type === "service" ? [{ service: binding.service, environment, name: binding.name }] : [],
          ),
        },
        durable_objects: [],
        dispatch_outbounds: users.flatMap(({ name, namespace }) =>
          namespace === undefined ? [] : [{ service: name, environment, namespace }],
        ),
      };
    },
  }),
  operation({
    id: "tail_producers",
    method: "GET",
    path: `${base}/tails/by-consumer/{script_name}`,
    summary: "List the scripts whose logs a script gets: none, as scripts cannot be tail consumers here",
    access: readAccess,
    result: z.array(z.never()),
    async handle(call) {
      scriptOf(accountPlace, call);
      return [];
    },
  }),
  listOperation({
    id: "durable_object_namespace_list",
    method: "GET",
    path: `${base}/durable_objects/namespaces`,
    summary: "List namespaces of Durable Objects: none, as scripts cannot have them here",
    access: readAccess,
    query: pageQuery({ default: 20, max: 1000 }),
    result: z.object({ id: z.string() }),
    handle: async ({ query }) => paginate([], query),
  }),
];

const AccountSettingsSchema = z.object({ default_usage_model: z.string(), green_compute: z.boolean() });
/** The platform has one usage model, and computes where it was installed. */
const accountSettings = { default_usage_model: "standard", green_compute: false } as const;

export const workerAccountOperations: readonly Operation[] = [
  operation({
    id: "workers_account_settings_get",
    method: "GET",
    path: `${base}/account-settings`,
    summary: "Get what holds for all scripts of the account",
    access: readAccess,
    result: AccountSettingsSchema,
    handle: async () => accountSettings,
  }),
  operation({
    id: "workers_account_settings_put",
    method: "PUT",
    path: `${base}/account-settings`,
    summary: "Confirm what holds for all scripts of the account: it cannot be changed here",
    access: editAccess,
    body: z.strictObject({
      default_usage_model: z.literal("standard").optional(),
      green_compute: z.literal(false).optional(),
    }),
    result: AccountSettingsSchema,
    handle: async () => accountSettings,
  }),
];
