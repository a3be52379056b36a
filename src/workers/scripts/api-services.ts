import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "./api-errors.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { deleteScript } from "./versions/api-code.ts";
import { accountScripts, editAccess, readAccess, scriptOf, type ScriptServices } from "./api-collection.ts";
import { ScriptSchema, scriptResource, TimeSchema } from "./resources.ts";
import { scriptNotFound } from "./errors.ts";

const { operation } = operationsFor<ScriptServices>(scriptErrorCodes);

const base = "/accounts/{account_id}/workers";

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

const scriptOperations = [
  operation({
    id: "service_get",
    method: "GET",
    path: `${base}/services/{script_name}`,
    summary: "Get a script with its one environment",
    access: readAccess,
    result: ServiceSchema,
    async handle(call) {
      const script = scriptOf(accountScripts, call);
      if (script.live.length === 0) throw scriptNotFound(accountScripts.owner(call), script.name);
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
    handle: async (call) =>
      deleteScript(accountScripts, call, scriptOf(accountScripts, call), call.query.force === "true"),
  }),
  operation({
    id: "script_references",
    method: "GET",
    path: `${accountScripts.path}/{script_name}/references`,
    summary: "List the scripts that use a script, and those that it uses",
    access: readAccess,
    result: z.object({
      services: z.object({ incoming: z.array(ReferenceSchema), outgoing: z.array(ReferenceSchema) }),
      durable_objects: z.array(ReferenceSchema),
      dispatch_outbounds: z.array(
        z.object({ service: z.string(), environment: z.literal("production"), namespace: z.string() }),
      ),
    }),
    async handle(call) {
      const { references, versions } = call.services;
      const script = scriptOf(accountScripts, call);
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
        durable_objects: users.flatMap(({ kind, name, binding }) =>
          kind === "durable_object" ? [{ service: name, environment, name: binding }] : [],
        ),
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
      scriptOf(accountScripts, call);
      return [];
    },
  }),
];

const AccountSettingsSchema = z.object({ default_usage_model: z.string(), green_compute: z.boolean() });
/** This platform has one usage model and no choice of data centers. */
const accountSettings = { default_usage_model: "standard", green_compute: false } as const;

const accountOperations = [
  operation({
    id: "workers_account_settings_get",
    method: "GET",
    path: `${base}/account-settings`,
    summary: "Get the settings that apply to all scripts of the account",
    access: readAccess,
    result: AccountSettingsSchema,
    handle: async () => accountSettings,
  }),
  operation({
    id: "workers_account_settings_put",
    audit: "none",
    method: "PUT",
    path: `${base}/account-settings`,
    summary: "Confirm the settings that apply to all scripts of the account; they cannot be changed here",
    access: editAccess,
    body: z.strictObject({
      default_usage_model: z.literal("standard").optional(),
      green_compute: z.literal(false).optional(),
    }),
    result: AccountSettingsSchema,
    handle: async () => accountSettings,
  }),
];

/** Operations of an older part of the API on the same scripts, and settings of all scripts of an account. */
export const serviceOperations = [...scriptOperations, ...accountOperations];
