import { z } from "zod";
import { operationsFor } from "../../../control/api/operation.ts";
import type { ActingObject } from "../../../sandbox/objects/standing.ts";
import { scriptErrorCodes } from "../../scripts/api-errors.ts";
import { objectErrors } from "../../scripts/versions/object-errors.ts";
import { isIdOf } from "../ids.ts";
import type { ObjectNamespaces } from "../namespaces.ts";
import type { ObjectWork } from "../object-work.ts";

export interface RecoveryServices {
  objectNamespaces: ObjectNamespaces;
  objectWork: ObjectWork;
}

const { operation } = operationsFor<RecoveryServices>(scriptErrorCodes);

const path = "/accounts/{account_id}/workers/durable_objects/namespaces/{namespace_id}/objects/{object_id}";
const access = { scope: "account", permission: "workers_scripts:edit" } as const;

/** The object of the path, which need not have data. */
function objectOf(
  accountId: string,
  params: Record<string, string>,
  namespaces: ObjectNamespaces,
): ActingObject {
  const [namespaceId, id] = [params["namespace_id"]!, params["object_id"]!];
  const namespace = namespaces.find(namespaceId);
  if (namespace?.accountId !== accountId || namespace.scriptId === null)
    throw objectErrors.namespaceNotFound(namespaceId);
  if (!/^[0-9a-f]{64}$/.test(id) || !isIdOf(namespaceId, { id })) throw objectErrors.objectNotFound(id);
  return { namespace: namespaceId, id };
}

export const recoveryOperations = [
  operation({
    id: "durable_object_restore",
    audit: "ahead",
    method: "POST",
    path: `${path}/restore`,
    summary: "Restore a Durable Object to the state of a bookmark or of a time. Requests in progress fail",
    access,
    body: z.strictObject({
      bookmark: z.string().max(128).optional(),
      timestamp: z.string().max(64).optional(),
    }),
    result: z.object({ bookmark: z.string(), previous_bookmark: z.string() }),
    async handle({ account, params, body: { bookmark, timestamp }, services }) {
      const object = objectOf(account.id, params, services.objectNamespaces);
      if ((bookmark === undefined) === (timestamp === undefined)) throw objectErrors.moment();
      const ms = Date.parse(timestamp ?? "1970-01-01");
      if (Number.isNaN(ms)) throw objectErrors.timestamp(timestamp!);
      const { before, after } = await services.objectWork.restore({ ...object, bookmark, ms });
      return { bookmark: after, previous_bookmark: before };
    },
  }),
];
