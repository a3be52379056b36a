import { join } from "node:path";
import { z } from "zod";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { namespacesPath, type ObjectServices } from "./api.ts";
import { hasObject, objectFile } from "./query/listing.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { isIdOf } from "./ids.ts";
import { queryLimits } from "./query/job.ts";
import { sensitive } from "../../control/api/sensitive.ts";

/* Operations on one object, which the public API does not have. */

const { operation } = operationsFor<ObjectServices>(scriptErrorCodes);
const path = `${namespacesPath}/{namespace_id}/objects/{object_id}`;

const QuerySchema = z.strictObject({
  sql: sensitive(z.string().min(1).max(queryLimits.sqlLengthMax)),
  params: sensitive(z.array(z.union([z.string(), z.number(), z.null()])).max(queryLimits.paramsMax)).default(
    [],
  ),
});

async function found(
  call: Call<unknown, unknown, ObjectServices>,
): Promise<{ namespace: ObjectNamespace; id: string }> {
  const { account, params, services } = call;
  const id = params["object_id"]!;
  const namespace = services.objectNamespaces.find(params["namespace_id"]!);
  if (namespace?.accountId !== account.id || namespace.scriptId === null)
    throw objectErrors.namespaceNotFound(params["namespace_id"]!);
  const isKnown = /^[0-9a-f]{64}$/.test(id) && isIdOf(namespace.id, { id });
  if (!isKnown || !(await hasObject(services.objectFolders.path, namespace.id, id)))
    throw objectErrors.objectNotFound(id);
  return { namespace, id };
}

export const objectOperations = [
  operation({
    id: "durable_object_query",
    audit: "ahead",
    method: "POST",
    path: `${path}/query`,
    summary: "Run a SELECT statement in the database of a Durable Object, without running its code",
    access: { scope: "account", permission: "workers_scripts:edit" },
    body: QuerySchema,
    result: z
      .object({ columns: z.array(z.string()), rows: z.array(z.array(z.unknown())), truncated: z.boolean() })
      .meta({ id: "DurableObjectQueryResult" }),
    async handle(call) {
      const { services, body, account } = call;
      const { namespace, id } = await found(call);
      const file = join(services.objectFolders.path, namespace.id, objectFile(id));
      return services.objectQueries.query(account.id, file, body);
    },
  }),
  operation({
    id: "durable_object_delete",
    audit: "ahead",
    method: "DELETE",
    path,
    summary: "Delete a Durable Object and its data, without running its code",
    access: { scope: "account", permission: "workers_scripts:edit" },
    result: z.object({ id: z.string() }),
    async handle(call) {
      const { namespace, id } = await found(call);
      const { objectRuns, objectAlarms, objectRecovery } = call.services;
      await objectRuns.remove(namespace, id);
      objectAlarms.forget(namespace.id, id);
      await objectRecovery.forget({ namespace: namespace.id, id });
      return { id };
    },
  }),
];
