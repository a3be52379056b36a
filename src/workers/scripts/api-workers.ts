import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "./api-errors.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { deleteScript } from "./versions/api-code.ts";
import { ObservabilitySchema, readScriptSettings, TagsSchema } from "./versions/metadata.ts";
import {
  accountScripts,
  byNameOrId,
  checkNewName,
  editAccess,
  readAccess,
  type AnyCall,
  type ScriptServices,
} from "./api-collection.ts";
import { TimeSchema } from "./resources.ts";
import type { Script } from "./script.ts";
import type { ScriptEdit } from "./scripts.ts";
import { scriptErrors } from "./errors.ts";

const { listOperation, operation } = operationsFor<ScriptServices>(scriptErrorCodes);

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
      queues: z.array(
        z.object({ queue_id: z.string(), queue_consumer_id: z.string(), queue_name: z.string() }),
      ),
      durable_objects: z.array(z.never()),
    }),
  })
  .meta({ id: "Worker" });

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
    id: services.scripts.get(accountScripts.owner(call), user.name).id,
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
      domains: services.domains.listOf(account.id, script.name).map(({ id, certId, hostname, zoneId }) => ({
        id,
        certificate_id: certId,
        hostname,
        zone_id: zoneId,
        zone_name: services.zones.find(zoneId)?.name ?? "",
      })),
      queues: services.references.consumedQueues(account.id, script.name).map(({ id, name, consumerId }) => ({
        queue_id: id,
        queue_consumer_id: consumerId,
        queue_name: name,
      })),
      durable_objects: [],
    },
  };
}

const EditSchema = z.strictObject({
  name: z.string().optional(),
  logpush: z.boolean().optional(),
  observability: ObservabilitySchema.nullish(),
  subdomain: z
    .strictObject({ enabled: z.boolean().optional(), previews_enabled: z.boolean().optional() })
    .optional(),
  tags: TagsSchema.nullish(),
  tail_consumers: z.array(z.unknown()).max(1000).nullish(),
});

function editOf(given: z.output<typeof EditSchema>): ScriptEdit {
  const { subdomain, tags } = given;
  return {
    settings: readScriptSettings(given),
    ...(tags === undefined ? {} : { tags: tags ?? [] }),
    ...(subdomain?.enabled === undefined ? {} : { subdomainEnabled: subdomain.enabled }),
    ...(subdomain?.previews_enabled === undefined ? {} : { previewsEnabled: subdomain.previews_enabled }),
  };
}

const one = `${base}/workers/{worker_name}`;
const workerOf = (call: AnyCall): Script => byNameOrId(call, call.params["worker_name"]!);

/** Scripts apart from their versions, by name or id. */
export const workerOperations = [
  listOperation({
    id: "worker_list",
    method: "GET",
    path: `${base}/workers`,
    summary: "List the account's scripts, also those without a version",
    access: readAccess,
    query: pageQuery({ default: 10, max: 100 }).extend({
      order_by: z.enum(["deployed_on", "updated_on", "created_on", "name"]).default("name"),
      order: z.enum(["asc", "desc"]).default("asc"),
    }),
    result: WorkerSchema,
    async handle(call) {
      const { order_by, order } = call.query;
      const key = ({ name, createdOn, modifiedOn }: Script): string | number =>
        order_by === "name" ? name : order_by === "created_on" ? createdOn : modifiedOn;
      const sign = order === "asc" ? 1 : -1;
      const scripts = call.services.scripts
        .list(accountScripts.owner(call))
        .sort((a, b) => (key(a) < key(b) ? -sign : sign));
      const page = paginate(scripts, call.query);
      return {
        ...page,
        items: await Promise.all(page.items.map(async (script) => workerResource(call, script))),
      };
    },
  }),
  operation({
    id: "worker_create",
    method: "POST",
    path: `${base}/workers`,
    summary: "Create a script without a version",
    access: editAccess,
    body: EditSchema.extend({ name: z.string() }),
    result: WorkerSchema,
    async handle(call) {
      const owner = accountScripts.owner(call);
      const { name } = call.body;
      checkNewName(owner, name);
      return workerResource(call, await call.services.scripts.create(owner, name, editOf(call.body)));
    },
  }),
  operation({
    id: "worker_get",
    method: "GET",
    path: one,
    summary: "Get a script by its name or id, with its URL and what uses it",
    access: readAccess,
    result: WorkerSchema,
    handle: async (call) => workerResource(call, workerOf(call)),
  }),
  ...(["PUT", "PATCH"] as const).map((method) =>
    operation({
      id: method === "PUT" ? "worker_put" : "worker_patch",
      method,
      path: one,
      summary: "Change the tags and other properties of a script that belong to no version",
      access: editAccess,
      body: EditSchema,
      result: WorkerSchema,
      async handle(call) {
        const { name } = workerOf(call);
        if (call.body.name !== undefined && call.body.name !== name) throw scriptErrors.rename(name);
        const edit = editOf(call.body);
        return workerResource(
          call,
          await call.services.scripts.edit(accountScripts.owner(call), name, () => edit),
        );
      },
    }),
  ),
  operation({
    id: "worker_delete",
    method: "DELETE",
    path: one,
    summary: "Delete a script with all of its versions",
    access: editAccess,
    result: z.null(),
    handle: async (call) => deleteScript(accountScripts, call, workerOf(call), false),
  }),
];
