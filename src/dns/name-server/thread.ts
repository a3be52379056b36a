import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { parentPort, workerData } from "node:worker_threads";
import { logUncaughtTo, noteUncaught, type UncaughtKind } from "../../platform/util/uncaught.ts";
import { Authority, type AuthorityOptions } from "./authority.ts";
import { ZoneSigner } from "../dnssec/zone-signer.ts";
import { DnsListeners } from "./listeners.ts";
import { loadSystemCalls } from "./udp/system-calls.ts";
import type { Update } from "./update.ts";
import type { LoggedQuery } from "./query-log.ts";
import type { AddressLookup } from "./zone/flattening.ts";

export interface ThreadOptions {
  options: AuthorityOptions;
  isBatched: boolean;
}
/** Orders to a thread. The thread replies to each with "done" or "failed", in order. */
export type ToThread =
  | { kind: "update"; update: Update }
  | { kind: "listen"; address: AddressInfo }
  | { kind: "counts" }
  | { kind: "close" };
export type FromThread =
  | { kind: "done"; value: unknown }
  | { kind: "failed"; message: string; code: unknown }
  | { kind: "want"; wanted: AddressLookup }
  | { kind: "transferred"; zoneId: string }
  | { kind: "queries"; queries: readonly LoggedQuery[] }
  | { kind: "error"; details: object; message: string }
  | { kind: "uncaught"; as: UncaughtKind; text: string };

const { options, isBatched } = workerData as ThreadOptions;
const port = parentPort!;
const send = (message: FromThread): void => port.postMessage(message);

logUncaughtTo((as, error) => send({ kind: "uncaught", as, text: inspect(error) }));
process.on("uncaughtException", (error) => noteUncaught("exception", error));
process.on("unhandledRejection", (reason) => noteUncaught("rejection", reason));

const authority = new Authority(
  options,
  {
    makeSigner: (zoneName, key) => new ZoneSigner(zoneName, key),
    want: (wanted) => send({ kind: "want", wanted }),
    onTransfer: (zoneId) => send({ kind: "transferred", zoneId }),
    onQueries: (queries) => send({ kind: "queries", queries }),
  },
  { error: (details: object, message: string) => send({ kind: "error", details, message }) },
);
const listeners = new DnsListeners(authority, isBatched ? await loadSystemCalls() : undefined);

async function carryOut(order: ToThread): Promise<unknown> {
  if (order.kind === "update") authority.apply(order.update);
  else if (order.kind === "counts") return authority.responder.counts;
  else if (order.kind === "listen") await listeners.share(order.address);
  else await listeners.close();
  return undefined;
}

let turn: Promise<void> = Promise.resolve();
port.on("message", (order: ToThread) => {
  turn = turn
    .then(() => carryOut(order))
    .then(
      (value) => send({ kind: "done", value }),
      (error: Error & { code?: unknown }) =>
        send({ kind: "failed", message: error.message, code: error.code }),
    );
});
