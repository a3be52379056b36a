import { defineErrors } from "../../platform/domain-error.ts";
import { databaseLimits } from "./database.ts";

export const d1Errors = defineErrors("d1", {
  notFound: (id: string) => `The database ${id} could not be found`,
  exists: (name: string) => ({
    message: `Database with name ${JSON.stringify(name)} already exists`,
    pointer: "/body/name",
  }),
  tooMany: () => `Expected at most ${databaseLimits.databasesOfAccount} databases in an account`,
  sql: (message: string) => message,
  failed: (message: string) => message,
  unreachable: (message: string) => ({ message: `${message} Try again in 1 second`, retryAfterSeconds: 1 }),
  parameters: () => ({ message: "Expected either sql or batch", pointer: "/body" }),
  timeTravel: () =>
    "Time travel is not part of this installation: the setting object-log is not set. Export a database to keep a copy of it",
  moment: () => "Expected either a bookmark or a timestamp",
  timestamp: (received: string) =>
    `Expected a time such as 2026-11-22T10:00:00Z for timestamp but received ${JSON.stringify(received)}`,
  unrestorable: (message: string) => message,
  noFile: (filename: string) => ({
    message: `No uploaded file ${JSON.stringify(filename)}. Begin with the action "init", and upload the file to its upload_url`,
    pointer: "/body/filename",
  }),
  etag: () => "The uploaded bytes do not match the etag of the import",
  fileTooLarge: () => `Expected a file of at most ${databaseLimits.importBytesMax} bytes`,
  noJob: (what: string) => ({
    message: `No ${what} with this bookmark is in progress`,
    pointer: "/body/current_bookmark",
  }),
  busy: (what: string) => `Another ${what} of the database is in progress`,
  noTransfer: () => "The link has expired, or does not exist",
});
