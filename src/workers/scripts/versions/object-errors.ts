import type { ExportFinding } from "./object-exports.ts";
import { defineErrors, inputErrors } from "../../../platform/domain-error.ts";

const reapplied =
  "If your script used to export this class, export it from the new version. To delete, rename or transfer the class, use a migration.";

/** Errors of Durable Objects in uploads and in the API. The texts are the public ones where there are some. */
export const objectErrors = defineErrors("objects", {
  binding: (className: string) =>
    `Cannot create binding for class '${className}' because it is not currently configured to implement Durable Objects. Ensure a --new-class migration has been applied to it.`,
  foreignBinding: (name: string) =>
    `The binding "${name}" names a namespace of Durable Objects that does not exist on this account, or that this script cannot use`,
  notExported: (className: string) =>
    `New version of script does not export class '${className}' which is depended on by existing Durable Objects. ${reapplied}`,
  newNotExported: (className: string) =>
    `Cannot apply new-class migration to class '${className}' that is not exported by script.`,
  exists: (kind: string, className: string) =>
    `Cannot apply ${kind}-class migration to class '${className}' that is already depended on by existing Durable Objects.`,
  missing: (kind: string, className: string) =>
    `Cannot apply ${kind}-class migration: no existing Durable Objects depend on class '${className}'.`,
  twice: (className: string) => ({
    message: `class '${className}' cannot be the target of more than one migration`,
    pointer: "/metadata/migrations",
  }),
  tag: (current: string | null) =>
    current === null
      ? "Migration tag precondition failed; the script has no tag"
      : `Migration tag precondition failed; current tag is ${current}`,
  migrationInVersion: () =>
    "Version upload failed. You attempted to upload a version of a Worker that includes a Durable Object migration, but migrations must be fully applied via a non-versioned deployment.",
  exports: (texts: readonly string[], details: readonly ExportFinding[]) => ({
    message: texts.join("; "),
    pointer: "/metadata/exports",
    meta: { details },
  }),
  unavailable: () => {
    const reason = inputErrors.absentProduct("Durable Objects");
    return {
      message: `${reason.message}: objects are kept in the data folder of one node, and this installation keeps its configuration in PostgreSQL, which several nodes may share`,
      reasons: [reason],
    };
  },
  unreachable: (message: string) => ({ message: `${message} Try again in 1 second`, retryAfterSeconds: 1 }),
  namespaceNotFound: (id: string) => `The account has no namespace of Durable Objects "${id}"`,
  objectNotFound: (id: string) => `The namespace has no Durable Object "${id}" with stored data`,
  query: (message: string) => ({ message, pointer: "/body/sql" }),
  queryTime: () => "The query took more than 30 seconds, or too much memory, and was ended",
  queriesBusy: () => "Other queries of objects are in progress. Try again when they have ended",
  moment: () => "Expected either a bookmark or a timestamp",
  timestamp: (received: string) => ({
    message: `Expected a time such as 2026-11-22T10:00:00Z for timestamp but received ${JSON.stringify(received)}`,
    pointer: "/body/timestamp",
  }),
  unrestorable: (message: string) => message,
  cursor: () => ({ message: "Expected the cursor of an earlier page", pointer: "/query/cursor" }),
});
