import { readBytes } from "../../control/api/body.ts";
import { callerError } from "../../control/api/errors.ts";
import { ObjectRefusal, Refusal } from "../../sandbox/errors.ts";
import type { BindingHandler } from "../../workers/binding.ts";
import { d1ErrorCodes } from "./api-errors.ts";
import type { DatabaseCalls } from "./calls.ts";
import { databaseLimits } from "./database.ts";
import type { Databases } from "./databases.ts";
import { isRead } from "./worker/is-read.ts";

const formats: ReadonlySet<string | null> = new Set(["ROWS_AND_COLUMNS", "NONE", "ARRAY_OF_OBJECTS"]);

/** Serves the calls of scripts' D1 bindings. Errors go into the answer, as workerd's client expects. */
export const d1Binding =
  (databases: Databases, calls: DatabaseCalls): BindingHandler<"d1"> =>
  async ({ caller, binding, url, request, response }) => {
    const fail = (error: string): void => {
      request.resume();
      const body = Buffer.from(JSON.stringify({ success: false, error }));
      response
        .writeHead(200, { "content-type": "application/json", "content-length": body.length })
        .end(body);
    };
    const format = url.searchParams.get("resultsFormat");
    if (url.pathname === "/dump") {
      request.resume();
      response.writeHead(404).end(); // as in the public service, except for its oldest databases
      return;
    }
    if (url.pathname !== "/query" && url.pathname !== "/execute")
      return fail("This method is not supported.");
    if (!formats.has(format)) return fail("Expected a known resultsFormat");
    const database = databases.find(caller.accountId, binding.id);
    if (database === undefined) return fail(`The database ${binding.id} does not exist any more.`);
    try {
      const body = await readBytes(request, databaseLimits.callBytesMax);
      const call = { path: `${url.pathname}?resultsFormat=${format}`, body, isRead: () => isReadCall(body) };
      await calls.send(database, call, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else if (error instanceof ObjectRefusal) fail(error.message);
      else {
        const shown = callerError(error, d1ErrorCodes);
        if (shown === undefined && !(error instanceof Refusal)) throw error;
        fail((shown ?? (error as Refusal)).message);
      }
    }
  };

const isReadBytesMax = 64 * 1024;
/** Whether the call is one statement that reads. Larger calls are not parsed here. */
function isReadCall(body: Uint8Array): boolean {
  if (body.length > isReadBytesMax) return false;
  try {
    const { sql } = JSON.parse(Buffer.from(body).toString()) as { sql?: unknown };
    return isRead(sql);
  } catch {
    return false;
  }
}
