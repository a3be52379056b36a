import { logResource, type AuditLog } from "../../../control/audit/api-v1.ts";
import type { AuditEntry } from "../../../control/audit/store.ts";
import type { TimestampFormat } from "../job.ts";
import { writeText, writeTime, type DataSet, type WriteField } from "./data-set.ts";

/** The JSON of a value that is JSON text already; undefined without a value. */
const json = (value: string): string | undefined => (value === "" ? undefined : value);

/** The audit log of an account, in the form of the public data set `audit_logs`. */
export const auditLogs: DataSet<AuditEntry> = {
  scope: "account",
  descriptions: {
    ActionResult: "Whether the action succeeded; bool",
    ActionType: "Operation of the management API; string",
    ActorEmail: "Email of the actor; string",
    ActorID: "Id of the actor; string",
    ActorIP: "Address of the actor; string",
    ActorType: "user, admin or Cloudflare, which is this installation itself; string",
    ID: "Id of the entry; string",
    Interface: "API, UI or system; string",
    Metadata: "More about the action; object",
    NewValue: "Resource after the change, without secrets; object",
    OldValue: "Resource before the change, without secrets; object",
    OwnerID: "Id of the account; string",
    ResourceID: "Id of the resource; string",
    ResourceType: "Type of the resource; string",
    When: "When the action happened; int or string",
  },
  writers(format) {
    const of = fields(format);
    // The fields of one entry are written one after the other, and read by several jobs.
    let last: { entry: AuditEntry; log: AuditLog } | undefined;
    const logOf = (entry: AuditEntry): AuditLog => {
      if (last?.entry !== entry) last = { entry, log: logResource(entry) };
      return last.log;
    };
    return Object.fromEntries(
      Object.entries(of).map(([name, write]) => [name, (entry: AuditEntry) => write(logOf(entry))]),
    );
  },
};

const fields = (format: TimestampFormat): Record<string, WriteField<AuditLog>> => ({
  ActionResult: ({ action }) => String(action.result),
  ActionType: ({ action }) => writeText(action.type),
  ActorEmail: ({ actor }) => writeText(actor.email),
  ActorID: ({ actor }) => writeText(actor.id),
  ActorIP: ({ actor }) => writeText(actor.ip),
  ActorType: ({ actor }) => writeText(actor.type),
  ID: ({ id }) => writeText(id),
  Interface: (entry) => writeText(entry.interface),
  Metadata: ({ metadata }) => JSON.stringify(metadata),
  NewValue: ({ newValue }) => json(newValue),
  OldValue: ({ oldValue }) => json(oldValue),
  OwnerID: ({ owner }) => writeText(owner.id),
  ResourceID: ({ resource }) => writeText(resource.id),
  ResourceType: ({ resource }) => writeText(resource.type),
  When: ({ when }) => writeTime[format](Date.parse(when)),
});
