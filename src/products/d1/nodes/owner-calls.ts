import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { readBytes } from "../../../control/api/body.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import type { Answerable } from "../../../sandbox/gateway/exchange.ts";
import { overloadedCells } from "../../../sandbox/objects/faults.ts";
import type { OwnedObjects } from "../../../workers/objects/nodes/owned-objects.ts";
import type { FromNode } from "../../../workers/objects/nodes/passed-calls.ts";
import { failing } from "../../../workers/call-failures.ts";
import type { DatabaseCall, DatabaseCalls } from "../calls.ts";
import { databaseLimits, namespaceOf, type D1Database } from "../database.ts";
import type { Databases } from "../databases.ts";
import { d1Errors } from "../errors.ts";

const name = "call of a database";
interface CallDetails extends Pick<DatabaseCall, "path"> {
  isRead: boolean;
  accountId: string;
  id: string;
}

/** Sends a call to the node that has a database. */
export type SendAtOwner = (database: D1Database, call: DatabaseCall, response: Answerable) => Promise<void>;

/** For an installation whose nodes divide the databases. `send` is for those of this node. */
export const sendAtOwner =
  (owned: OwnedObjects, send: SendAtOwner): SendAtOwner =>
  async (database, call, response) => {
    const { accountId, id } = database;
    const { path, isRead, body } = call;
    await owned.at(
      namespaceOf(database),
      async (node) =>
        node === undefined
          ? send(database, call, response)
          : node.forward(name, { path, isRead: isRead(), accountId, id } satisfies CallDetails, {
              url: new URL("http://d1/"),
              request: requestOf(body),
              response: response as unknown as ServerResponse,
            }),
      () => body instanceof Uint8Array && !response.headersSent,
    );
  };

/** Answers such calls of other nodes. */
export function serveDatabases(
  calls: ProcessCalls,
  owned: OwnedObjects,
  databases: Databases,
  d1Calls: DatabaseCalls,
): void {
  calls.serve<CallDetails & FromNode>(name, async ({ seq, ...details }, { request, response }) => {
    const { accountId, id, path, isRead } = details;
    const isCurrent = await owned.takesOver({ seq });
    const send = async (): Promise<void> => {
      const database = databases.find(accountId, id);
      if (database === undefined) throw isCurrent ? d1Errors.notFound(id) : overloadedCells();
      const body = isRead ? await readBytes(request, databaseLimits.callBytesMax) : request;
      await owned.here(namespaceOf(database), async () =>
        d1Calls.sendHere(database, { path, isRead: () => isRead, body }, response),
      );
    };
    await failing(send());
  });
}

/** The part of a request that a call between nodes uses. */
function requestOf(body: Uint8Array | Readable): IncomingMessage {
  const isBytes = body instanceof Uint8Array;
  const stream = isBytes ? Readable.from([body], { objectMode: false }) : body;
  const headers: Record<string, string> = isBytes
    ? { "content-length": String(body.length) }
    : { "transfer-encoding": "chunked" };
  const rawHeaders = Object.entries(headers).flat();
  return Object.assign(stream, { method: "POST", headers, rawHeaders }) as unknown as IncomingMessage;
}
