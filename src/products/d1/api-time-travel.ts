import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { d1ErrorCodes } from "./api-errors.ts";
import { databaseOf, databasePath, edit, read, type D1Services } from "./database-call.ts";

const { operation } = operationsFor<D1Services>(d1ErrorCodes);

const bookmark = z.string().max(128);
const timestamp = z.string().max(64);

export const timeTravelOperations = [
  operation({
    id: "d1_time_travel_get_bookmark",
    method: "GET",
    path: `${databasePath}/time_travel/bookmark`,
    summary: "Get the bookmark of a time, or of the current state",
    access: read.access,
    query: z.object({ timestamp: timestamp.optional() }),
    result: z.object({ bookmark: z.string() }),
    handle: async (call) => ({
      bookmark: await call.services.d1TimeTravel.bookmark(databaseOf(call), call.query.timestamp),
    }),
  }),
  operation({
    id: "d1_time_travel_restore",
    audit: "ahead",
    method: "POST",
    path: `${databasePath}/time_travel/restore`,
    summary: "Restore the database to a bookmark or a time; queries in progress fail",
    access: { scope: edit.access.scope, permission: edit.access.permission },
    query: z.object({ bookmark: bookmark.optional(), timestamp: timestamp.optional() }),
    bodyOptional: true,
    acceptAnyContentType: true,
    result: z.object({ bookmark: z.string(), previous_bookmark: z.string(), message: z.string() }),
    handle: async (call) => call.services.d1TimeTravel.restore(databaseOf(call), call.query),
  }),
];
