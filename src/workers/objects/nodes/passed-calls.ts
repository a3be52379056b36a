import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { dirname } from "node:path";
import { newCallTree, type Via, type ViaHeader } from "../../../edge/http/via.ts";
import type { Outbound, Sender } from "../../../edge/origin/outbound.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { Kept } from "../../../platform/process-calls/kept.ts";
import { asciiJson } from "../../../platform/util/ascii-json.ts";
import { endWith } from "../../../platform/util/raw-http.ts";
import type { RpcTunnels } from "../../../sandbox/gateway/rpc-tunnels.ts";
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

export const callNames = {
  fetch: "fetch of an object",
  route: "method call of an object",
  fault: "fault of an object",
  tunnel: "door to objects", // nodes of earlier versions know it by this name
  next: "visitor's origin",
  presence: "presence of a node",
} as const;

/** Where the visitor's origin is asked for: a process, and its name for the root. */
interface ReturnAddress {
  path: string;
  root: string;
  /** The edge process that has the root, if the process is only on the way to it. */
  behind?: string;
}

/** The return addresses of roots of other processes, and the calls over which they came. */
const returnAddresses = new WeakMap<RunRoot, { from: ReturnAddress; calls: ProcessCalls }>();

/** A RunRoot in the form in which an edge process sends it to main. */
interface SerializedRoot {
  /** The calls up to the first script, as in the header of a request, for `viaHost`. */
  via: string;
  visitor:
    | (Pick<RunVisitor, "host" | "clientAddress" | "zone"> & {
        cf: string;
        from: ReturnAddress;
      })
    | undefined;
}

export type SerializedCall = Omit<ObjectCall, "root" | "span"> & { root: SerializedRoot };
/** A fetch from the zone of the visitor's request. The account is that of the object. */
type NextCall = Omit<ReturnAddress, "path"> & { hops: number; accountId: string };

/** Details of a call of another node, with the last change that is in effect there. */
export interface FromNode {
  seq?: number | undefined;
}

const viaHost = "main";
export const noRequest = async (): Promise<never> => {
  throw new Error("Expected an upgrade");
};

/** Sends calls from the process that has the calling script. */
export class OutgoingCalls {
  readonly #viaHeader: ViaHeader;
  readonly #calls: ProcessCalls;
  readonly #ofEdges: ProcessCalls | undefined;
  readonly #roots = new Kept<RunRoot>();

  /**
   * Answers the questions of the other side. `outbound` is for those after the visitor's answer, `ofEdges` for those of
   * other nodes that an edge process of this node answers.
   */
  constructor(calls: ProcessCalls, viaHeader: ViaHeader, outbound: Outbound, ofEdges?: ProcessCalls) {
    this.#viaHeader = viaHeader;
    this.#calls = calls;
    this.#ofEdges = ofEdges;
    calls.serve<NextCall>(
      callNames.next,
      async ({ behind, ...call }, { url, request, response }) => {
        if (behind !== undefined) {
          const passed = this.#edgesFor(behind).forward(
            callNames.next,
            call,
            { url, request, response },
            behind,
          );
          return failing(understood(passed));
        }
        const { next, via, sender } = this.#upstreamOf(call);
        await failing(next?.(url, request, response, via) ?? outbound.fetch(url, request, response, sender));
      },
      async ({ behind, ...call }, { url, request, socket, head }) => {
        if (behind !== undefined)
          return this.#edgesFor(behind).upgrade(callNames.next, call, { url, request, socket, head }, behind);
        const { nextUpgrade, via, sender } = this.#upstreamOf(call);
        const joined =
          nextUpgrade?.(url, request, socket, head, via) ??
          outbound.upgrade(url, request, socket, head, sender);
        await joined.catch((error: unknown) => refuseUpgrade(socket, error));
      },
    );
  }

  serialize({ root, span: _span, ...call }: ObjectCall): SerializedCall {
    return {
      ...call,
      root: serializeRoot(root, this.#viaHeader, this.#returnAddressOf(root)),
    };
  }

  /** Nothing holds the root of another process here while its call goes on, so that process is named, not the root here. */
  #returnAddressOf(root: RunRoot): ReturnAddress {
    const { path } = this.#calls;
    const known = returnAddresses.get(root);
    if (known === undefined) return { path, root: this.#roots.nameOf(root) };
    const { from, calls } = known;
    return calls === this.#calls ? from : { path, root: from.root, behind: from.path };
  }

  #edgesFor(path: string): ProcessCalls {
    const edges = this.#ofEdges;
    if (edges === undefined || dirname(path) !== dirname(edges.path))
      throw new Error("Expected an edge process of this node");
    return edges;
  }

  /** After the visitor's answer, it is a fetch as from any script. */
  #upstreamOf({ root: name, hops, accountId }: NextCall): Upstream {
    const root = this.#roots.find(name);
    const via = { hops, tree: root === undefined ? newCallTree() : treeOf(root) };
    return { ...root, via, sender: { accountId, via } };
  }
}

type Upstream = Partial<Pick<RunRoot, "next" | "nextUpgrade">> & { via: Via; sender: Sender };

/** Shows the error to the script, unless a part of an answer was sent. Throws one that scripts do not see. */
function refuseUpgrade(socket: Socket, error: unknown): void {
  const shown = scriptErrorOf(error);
  if (shown === undefined) throw error;
  if (socket.bytesWritten > 0) socket.destroy();
  else endWith(socket, refusedUpgrade(shown));
}

function serializeRoot(root: RunRoot, viaHeader: ViaHeader, from: ReturnAddress): SerializedRoot {
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
  tunnels: RpcTunnels,
  before: (call: SerializedCall & FromNode) => Promise<void> = async () => {},
): void {
  const callOf = ({ root, ...call }: SerializedCall): ObjectCall => ({
    ...call,
    // JSON omits properties that are undefined.
    limits: call.limits,
    outbound: call.outbound,
    root: rootOf(root, viaHeader, calls, call.caller.accountId),
    span: undefined,
  });
  calls.serve<SerializedCall>(
    callNames.fetch,
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
  calls.serve<{ call: SerializedCall; method: string }>(
    callNames.route,
    async ({ call, method }, { response }) => {
      await before(call);
      const route = await failing(objects.route(callOf(call), undefined, method));
      if ("event" in route)
        throw new Error("Main returned an object in the caller's own cell to an edge process");
      sendJson(response, route);
    },
  );
  calls.serve<{ host: string }>(callNames.tunnel, noRequest, async ({ host }, { socket, head }) =>
    tunnels.join(host, socket, head),
  );
  calls.serve(callNames.presence, async (_details, { response }) => sendJson(response, null));
  calls.serve<{ token: string }>(callNames.fault, async ({ token }, { response }) => {
    const fault = await tunnels.faultOf(token);
    sendJson(response, fault === undefined ? null : { message: fault.message, flags: fault.flags });
  });
}

function rootOf(
  { via, visitor }: SerializedRoot,
  viaHeader: ViaHeader,
  calls: ProcessCalls,
  accountId: string,
): RunRoot {
  const { hops, tree } = viaHeader.read(via, viaHost)!;
  const shared = { hops, tree, limitFault: undefined };
  if (visitor === undefined)
    return { ...shared, edgeRequest: undefined, next: undefined, nextUpgrade: undefined };
  const { cf, from, ...seen } = visitor;
  const { path, ...rest } = from;
  const nextCall = (via: Via): NextCall => ({ ...rest, hops: via.hops, accountId });
  const root: RunRoot = {
    ...shared,
    edgeRequest: { ...seen, zone: seen.zone, cf: () => cf, span: undefined },
    next: async (url, request, response, via) =>
      understood(calls.forward(callNames.next, nextCall(via), { url, request, response }, path)),
    nextUpgrade: async (url, request, socket, head, via) =>
      calls.upgrade(callNames.next, nextCall(via), { url, request, socket, head }, path),
  };
  returnAddresses.set(root, { from, calls });
  return root;
}

function sendJson(response: ServerResponse, value: unknown): void {
  const text = asciiJson(value);
  response.writeHead(200, { "content-length": text.length }).end(text);
}
