import { z } from "zod";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { namespacesPath, type ObjectServices } from "./api.ts";
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

function found(call: Call<unknown, unknown, ObjectServices>): { namespace: string; id: string } {
  const { account, params, services } = call;
  const id = params["object_id"]!;
  const namespace = services.objectNamespaces.find(params["namespace_id"]!);
  if (namespace?.accountId !== account.id || namespace.scriptId === null)
    throw objectErrors.namespaceNotFound(params["namespace_id"]!);
  if (!/^[0-9a-f]{64}$/.test(id) || !isIdOf(namespace.id, { id })) throw objectErrors.objectNotFound(id);
  return { namespace: namespace.id, id };
}

export const objectOperations = [
  operation({
    id: "durable_object_query",
    audit: "ahead",
    isView: true,
    method: "POST",
    path: `${path}/query`,
    summary: "Run a SELECT statement in the database of a Durable Object, without running its code",
    access: { scope: "account", permission: "workers_scripts:edit" },
    body: QuerySchema,
    result: z
      .object({ columns: z.array(z.string()), rows: z.array(z.array(z.unknown())), truncated: z.boolean() })
      .meta({ id: "DurableObjectQueryResult" }),
    handle: async (call) =>
      call.services.objectWork.query({ ...found(call), accountId: call.account.id, question: call.body }),
  }),
  operation({
    id: "durable_object_delete",
    audit: "ahead",
    method: "DELETE",
    path,
    summary: "Delete a Durable Object and its data, without running its code",
    access: { scope: "account", permission: "workers_scripts:edit" },
    result: z.object({ id: z.string() }),
    handle: async (call) => call.services.objectWork.remove(found(call)),
  }),
];
