import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { newCallTree, type Via, type ViaHeader } from "../../../edge/http/via.ts";
import type { Outbound, Sender } from "../../../edge/origin/outbound.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { Kept } from "../../../platform/process-calls/kept.ts";
import { asciiJson } from "../../../platform/util/ascii-json.ts";
import { endWith } from "../../../platform/util/raw-http.ts";
import type { Doors } from "../../../sandbox/gateway/doors.ts";
import { failing, understood } from "../../call-failures.ts";
import type { ObjectCall, ObjectGate } from "../../runtime/object-gate.ts";
import { treeOf, type RunRoot, type RunVisitor } from "../../runtime/run-root.ts";
import { scriptErrorOf } from "../../runtime/errors.ts";
import { refusedUpgrade } from "../../runtime/run-parts.ts";

/*
 * Calls of Durable Objects between the process that has the calling script and the one that has the object: an edge process
 * and main, or two nodes. The object's run asks back when it fetches from the zone of the visitor's request, because the way
 * on is the caller's.
 */

export const names = {
  fetch: "fetch of an object",
  route: "method call of an object",
  fault: "fault of an object",
  door: "door to objects",
  next: "visitor's origin",
} as const;

/** A RunRoot in the form in which an edge process sends it to main. */
interface ToldRoot {
  /** The calls up to the first script, as in the header of a request, for `viaHost`. */
  via: string;
  visitor:
    | (Pick<RunVisitor, "host" | "clientAddress" | "zone"> & {
        cf: string;
        /** Where main asks for the visitor's origin: the process, and its name for the root. */
        from: { path: string; root: string };
      })
    | undefined;
}

export type ToldCall = Omit<ObjectCall, "root" | "span"> & { root: ToldRoot };
/** A fetch from the zone of the visitor's request. The account is that of the object. */
type ToldNext = { root: string; hops: number; accountId: string };

/** Details of a call of another node, with the last change that is in effect there. */
export interface FromNode {
  seq?: number | undefined;
}

const viaHost = "main";
export const noRequest = async (): Promise<never> => {
  throw new Error("Expected an upgrade");
};

/** The way of calls from the process that has the calling script. */
export class CallsOut {
  readonly #viaHeader: ViaHeader;
  readonly #path: string;
  readonly #roots = new Kept<RunRoot>();

  /** Answers the questions of the other side. `outbound` is for those after the visitor's answer. */
  constructor(calls: ProcessCalls, viaHeader: ViaHeader, outbound: Outbound) {
    this.#viaHeader = viaHeader;
    this.#path = calls.path;
    calls.serve<ToldNext>(
      names.next,
      async (told, { url, request, response }) => {
        const { next, via, sender } = this.#wayOf(told);
        await failing(next?.(url, request, response, via) ?? outbound.fetch(url, request, response, sender));
      },
      async (told, { url, request, socket, head }) => {
        const { nextUpgrade, via, sender } = this.#wayOf(told);
        const joined =
          nextUpgrade?.(url, request, socket, head, via) ??
          outbound.upgrade(url, request, socket, head, sender);
        await joined.catch((error: unknown) => refuseUpgrade(socket, error));
      },
    );
  }

  told({ root, span: _span, ...call }: ObjectCall): ToldCall {
    return {
      ...call,
      root: toldRoot(root, this.#viaHeader, { path: this.#path, root: this.#roots.nameOf(root) }),
    };
  }

  /** After the visitor's answer, it is a fetch as from any script. */
  #wayOf({ root: name, hops, accountId }: ToldNext): Way {
    const root = this.#roots.find(name);
    const via = { hops, tree: root === undefined ? newCallTree() : treeOf(root) };
    return { ...root, via, sender: { accountId, via } };
  }
}

type Way = Partial<Pick<RunRoot, "next" | "nextUpgrade">> & { via: Via; sender: Sender };

/** Shows the error to the script, unless a part of an answer was sent. Throws one that scripts do not see. */
function refuseUpgrade(socket: Socket, error: unknown): void {
  const shown = scriptErrorOf(error);
  if (shown === undefined) throw error;
  if (socket.bytesWritten > 0) socket.destroy();
  else endWith(socket, refusedUpgrade(shown));
}

function toldRoot(root: RunRoot, viaHeader: ViaHeader, from: { path: string; root: string }): ToldRoot {
  const { hops, edgeRequest } = root;
  return {
    via: viaHeader.write({ hops, tree: treeOf(root) }, viaHost),
    visitor: edgeRequest && {
      host: edgeRequest.host,
      clientAddress: edgeRequest.clientAddress,
      zone: edgeRequest.zone && { id: edgeRequest.zone.id },
      cf: edgeRequest.cf(),
      from,
    },
  };
}

/** Calls objects of this process for scripts in others. */
export function serveObjects(
  calls: ProcessCalls,
  objects: ObjectGate,
  viaHeader: ViaHeader,
  doors: Doors,
  before: (call: ToldCall & FromNode) => Promise<void> = async () => {},
): void {
  const callOf = ({ root, ...call }: ToldCall): ObjectCall => ({
    ...call,
    // JSON omits properties that are undefined.
    limits: call.limits,
    outbound: call.outbound,
    root: rootOf(root, viaHeader, calls, call.caller.accountId),
    span: undefined,
  });
  calls.serve<ToldCall>(
    names.fetch,
    async (call, exchange) => {
      await before(call);
      await failing(objects.fetch(callOf(call), exchange));
    },
    async (call, exchange) => {
      await before(call);
      // Errors that scripts do not see are logged, and end the connection.
      await objects
        .upgrade(callOf(call), exchange)
        .catch((error: unknown) => refuseUpgrade(exchange.socket, error));
    },
  );
  calls.serve<{ call: ToldCall; method: string }>(names.route, async ({ call, method }, { response }) => {
    await before(call);
    const route = await failing(objects.route(callOf(call), undefined, method));
    if ("event" in route)
      throw new Error("Main returned an object in the caller's own cell to an edge process");
    sendJson(response, route);
  });
  calls.serve<{ host: string }>(names.door, noRequest, async ({ host }, { socket, head }) =>
    doors.join(host, socket, head),
  );
  calls.serve<{ token: string }>(names.fault, async ({ token }, { response }) => {
    const fault = await doors.faultOf(token);
    sendJson(response, fault === undefined ? null : { message: fault.message, flags: fault.flags });
  });
}

function rootOf(
  { via, visitor }: ToldRoot,
  viaHeader: ViaHeader,
  calls: ProcessCalls,
  accountId: string,
): RunRoot {
  const { hops, tree } = viaHeader.read(via, viaHost)!;
  const shared = { hops, tree, limitFault: undefined };
  if (visitor === undefined)
    return { ...shared, edgeRequest: undefined, next: undefined, nextUpgrade: undefined };
  const { cf, from, ...seen } = visitor;
  const told = (via: Via): ToldNext => ({ root: from.root, hops: via.hops, accountId });
  return {
    ...shared,
    edgeRequest: { ...seen, zone: seen.zone, cf: () => cf, span: undefined },
    next: async (url, request, response, via) =>
      understood(calls.forward(names.next, told(via), { url, request, response }, from.path)),
    nextUpgrade: async (url, request, socket, head, via) =>
      calls.upgrade(names.next, told(via), { url, request, socket, head }, from.path),
  };
}

function sendJson(response: ServerResponse, value: unknown): void {
  const text = asciiJson(value);
  response.writeHead(200, { "content-length": text.length }).end(text);
}
