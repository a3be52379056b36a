import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import type { Scripts } from "../scripts/scripts.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { recoveryOperations, type RecoveryServices } from "./recovery/api-recovery.ts";

export interface ObjectServices extends RecoveryServices {
  scripts: Scripts;
}

const { listOperation, operation } = operationsFor<ObjectServices>(scriptErrorCodes);

export const namespacesPath = "/accounts/{account_id}/workers/durable_objects/namespaces";
const access = { scope: "account", permission: "workers_scripts:read" } as const;

const NamespaceSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    script: z.string(),
    class: z.string(),
    use_sqlite: z.boolean(),
  })
  .meta({ id: "DurableObjectNamespace" });

const ObjectSchema = z
  .object({ id: z.string(), hasStoredData: z.boolean(), storedBytes: z.int() })
  .meta({ id: "DurableObject" });

export const namespaceOperations = [
  listOperation({
    id: "durable_object_namespace_list",
    method: "GET",
    path: namespacesPath,
    summary: "List the namespaces of Durable Objects of an account's scripts and customers' scripts",
    access,
    query: pageQuery({ default: 20, max: 1000 }),
    result: NamespaceSchema,
    async handle({ account, query, services }) {
      const page = paginate(services.objectNamespaces.list(account.id), query);
      return { ...page, items: page.items.map((namespace) => resource(namespace, services.scripts)) };
    },
  }),
  operation({
    id: "durable_object_list",
    method: "GET",
    path: `${namespacesPath}/{namespace_id}/objects`,
    summary: "List the Durable Objects of a namespace that have stored data",
    access,
    query: z.object({
      limit: z.coerce.number().int().min(10).max(10_000).default(1000),
      cursor: z.string().max(64).optional(),
    }),
    result: z.array(ObjectSchema),
    async handle(call) {
      const { account, params, query, services } = call;
      const namespace = services.objectNamespaces.find(params["namespace_id"]!);
      if (namespace?.accountId !== account.id) throw objectErrors.namespaceNotFound(params["namespace_id"]!);
      if (query.cursor !== undefined && !/^[0-9a-f]{64}$/.test(query.cursor)) throw objectErrors.cursor();
      const { objects, next } = await services.objectWork.list({ namespace: namespace.id, ...query });
      call.resultInfo = { count: objects.length, cursor: next ?? "" };
      return objects.map((object) => ({ ...object, hasStoredData: true }));
    },
  }),
  ...recoveryOperations,
];

function resource(
  { id, scriptId, className, isSqlite }: ObjectNamespace,
  scripts: Scripts,
): z.input<typeof NamespaceSchema> {
  const script = scriptId === null ? "" : (scripts.findById(scriptId)?.name ?? "");
  return { id, name: `${script}_${className}`, script, class: className, use_sqlite: isSqlite };
}
