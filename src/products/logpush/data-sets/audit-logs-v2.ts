import { timeOfEntry } from "../../../control/audit/entry-id.ts";
import { entryResource } from "../../../control/audit/api-v2.ts";
import type { AuditEntry } from "../../../control/audit/store.ts";
import { writeTime, type DataSet } from "./data-set.ts";

const text = (value: string | null): string | undefined =>
  value === null ? undefined : JSON.stringify(value);

/**
 * The audit log of an account, in the form of the public data set `audit_logs_v2`. Publicly there are also ResourceResponse and ResourceValue, which an entry
 * does not have: it is written before the answer.
 */
export const auditLogsV2: DataSet<AuditEntry> = {
  scope: "account",
  descriptions: {
    AccountID: "Id of the account; string",
    AccountName: "Name of the account; string",
    ActionDescription: "Summary of the operation; string",
    ActionResult: "success or failure; string",
    ActionTimestamp: "When the action happened; int or string",
    ActionType: "create, delete, update or view; string",
    ActorContext: "api_key, api_token or dash; string",
    ActorEmail: "Email of the actor; string",
    ActorID: "Id of the actor; string",
    ActorIPAddress: "Address of the actor; string",
    ActorTokenDetails: "Token of the actor, with token_id and token_name; object",
    ActorType: "account, system or user; string",
    AuditLogID: "Id of the entry; string",
    Raw: "Call, with cf_ray_id, method, status_code, uri and user_agent; object",
    ResourceID: "Id of the resource; string",
    ResourceProduct: "Product of the resource; string",
    ResourceRequest: "Body of the call, without secrets; object",
    ResourceScope: "accounts, memberships, user or zones; string",
    ResourceType: "Type of the resource; string",
    ZoneID: "Id of the zone; string",
    ZoneName: "Name of the zone; string",
  },
  writers: (format) => ({
    AccountID: (entry) => text(entry.account_id),
    AccountName: (entry) => text(entry.account_name),
    ActionDescription: (entry) => text(entry.description),
    ActionResult: (entry) => text(entry.action_result),
    ActionTimestamp: ({ id }) => writeTime[format](timeOfEntry(id)),
    ActionType: (entry) => text(entry.action_type),
    ActorContext: (entry) => text(entry.actor_context),
    ActorEmail: (entry) => text(entry.actor_email),
    ActorID: (entry) => text(entry.actor_id),
    ActorIPAddress: (entry) => text(entry.actor_ip_address),
    ActorTokenDetails: ({ actor_token_id: token_id, actor_token_name: token_name }) =>
      token_id === null ? undefined : JSON.stringify({ token_id, token_name }),
    ActorType: (entry) => text(entry.actor_type),
    AuditLogID: ({ id }) => text(id),
    Raw: (entry) => (entry.raw_method === null ? undefined : JSON.stringify(entryResource(entry).raw)),
    ResourceID: (entry) => text(entry.resource_id),
    ResourceProduct: (entry) => text(entry.resource_product),
    ResourceRequest: ({ request }) => request ?? undefined,
    ResourceScope: (entry) => text(entry.resource_scope),
    ResourceType: (entry) => text(entry.resource_type),
    ZoneID: (entry) => text(entry.zone_id),
    ZoneName: (entry) => text(entry.zone_name),
  }),
};
