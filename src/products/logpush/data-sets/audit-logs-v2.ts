import { timeOfEntry } from "../../../control/audit/entry-id.ts";
import { entryResource } from "../../../control/audit/api-v2.ts";
import type { AuditEntry } from "../../../control/audit/store.ts";
import { writeText, writeTime, type DataSet } from "./data-set.ts";

/**
 * The audit log of an account, in the form of the public data set `audit_logs_v2`, without ResourceResponse and
 * ResourceValue: an entry has neither, because it is written before the response.
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
    AccountID: (entry) => writeText(entry.account_id),
    AccountName: (entry) => writeText(entry.account_name),
    ActionDescription: (entry) => writeText(entry.description),
    ActionResult: (entry) => writeText(entry.action_result),
    ActionTimestamp: ({ id }) => writeTime[format](timeOfEntry(id)),
    ActionType: (entry) => writeText(entry.action_type),
    ActorContext: (entry) => writeText(entry.actor_context),
    ActorEmail: (entry) => writeText(entry.actor_email),
    ActorID: (entry) => writeText(entry.actor_id),
    ActorIPAddress: (entry) => writeText(entry.actor_ip_address),
    ActorTokenDetails: ({ actor_token_id: token_id, actor_token_name: token_name }) =>
      token_id === null ? undefined : JSON.stringify({ token_id, token_name }),
    ActorType: (entry) => writeText(entry.actor_type),
    AuditLogID: ({ id }) => writeText(id),
    Raw: (entry) => (entry.raw_method === null ? undefined : JSON.stringify(entryResource(entry).raw)),
    ResourceID: (entry) => writeText(entry.resource_id),
    ResourceProduct: (entry) => writeText(entry.resource_product),
    ResourceRequest: ({ request }) => request ?? undefined,
    ResourceScope: (entry) => writeText(entry.resource_scope),
    ResourceType: (entry) => writeText(entry.resource_type),
    ZoneID: (entry) => writeText(entry.zone_id),
    ZoneName: (entry) => writeText(entry.zone_name),
  }),
};
