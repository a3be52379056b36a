import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSocketServer, type Server as SocketServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { LRUCache } from "lru-cache";
import { hopsMax } from "../../edge/http/via.ts";
import { whileAnswering } from "../../platform/observability/last-net.ts";
import { Linger } from "../../platform/util/linger.ts";
import { responseHead, endWith } from "../../platform/util/raw-http.ts";
import type { CurrentData } from "../../platform/processes/main-channel.ts";
import { cellHeaders, type LocalCall } from "../protocol.ts";
import { headerText, MalformedError, readChild } from "./cell-messages.ts";
import type { RpcTunnels } from "./rpc-tunnels.ts";
import { errorHeaders } from "./error-headers.ts";
import { heldAt, type Gate } from "../connections/held-socket.ts";
import {
  PacedSocket,
  webSocketLimits,
  withoutExtensions,
  type WebSocketLimits,
} from "../connections/paced-socket.ts";
import { CellMessage, goOnAfter, hasBody, scriptIdOf, takeRunProtocol, urlOf } from "./gateway-request.ts";
import type { LateRun, RunHooks } from "./run-hooks.ts";
import { objectMessageIn } from "./object-messages.ts";
import { isLocalRun, ObjectQuestions } from "./object-questions.ts";
import { readReference } from "./object-reference.ts";
import { outdated, Refusal, refusalText } from "../errors.ts";
import { rpcHostOf } from "../process/object-config.ts";
import type { CellScript } from "../process/script.ts";
import { protocolLimits } from "../settings.ts";
import type { PacedCell } from "../limits/frame-pace.ts";
import type { Traffic } from "../limits/traffic.ts";
import { loadable } from "../process/worker-sources.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

/** Time after the answer in which work that a script left running may still make requests. */
const afterAnswerMs = 30_000;

/** For cells whose scripts may call objects: the ways to them. For cells of objects also their slots and gates. */
export interface GatewayParts {
  mainChannel?: CurrentData | undefined;
  tunnels?: RpcTunnels | undefined;
  slot?: number | undefined;
  gate?: Gate | undefined;
}

/**
 * The HTTP server on the one socket that a cell can reach. It answers all requests of scripts and of the system
 * worker.
 */
export class GatewayServer {
  readonly #server: Server;
  /** Accepts connections for the server. */
  readonly #sockets: SocketServer;
  readonly #runs = new Map<string, RunHooks>();
  readonly #late = new Linger<LateRun>(afterAnswerMs);
  readonly #children = new Map<string, string[]>();
  /** Called at the ends of method calls, by the tokens of their runs. */
  readonly #ends = new Map<string, () => void>();
  /** Scripts that were used lately. A cell loads a script right after it was offered. */
  readonly #scripts = new LRUCache<string, CellScript>({
    max: 512,
    maxSize: protocolLimits.offeredBytes,
    sizeCalculation: ({ modules }) =>
      Math.min(
        modules.reduce((sum, { content }) => sum + content.length, 1),
        protocolLimits.offeredBytes,
      ),
  });
  /** Ids of the scripts whose code was sent to the cell. */
  readonly #sent = new LRUCache<string, true>(entriesMax(10_000));
  /** The owners of the targets of dispatches that the cell knows, by the ids of the scripts. */
  readonly dispatched = new LRUCache<string, string>(entriesMax(10_000));
  loads = 0;
  /** Length of the JSON that was sent to the cell. */
  loadedBytes = 0;
  /** Number of requests from the cell. */
  requests = 0;
  #codeBytes = 0;
  readonly #secret: string;
  readonly #onActivity: () => void;
  readonly #mainChannel: CurrentData | undefined;
  /** For a cell of objects: the hooks of a run that no request began. */
  standing: ((token: string) => Promise<RunHooks | undefined>) | undefined;
  /** For a cell of objects: asks the cell for the call that has begun a run. */
  local: ((token: string) => Promise<LocalCall | undefined>) | undefined;
  /** Called before code is sent: returns a promise if the load must wait until the cell has room for it. */
  room: (() => Promise<void> | undefined) | undefined;
  readonly objects: ObjectQuestions;
  readonly webSockets: WebSocketLimits;

  /** `secret` identifies the cell's system worker; no script knows it. */
  constructor(
    secret: string,
    traffic: Traffic,
    onActivity: () => void,
    parts: GatewayParts = {},
    cell: PacedCell = { ping: async () => {}, cpuMs: () => 0 },
  ) {
    this.webSockets = webSocketLimits(cell);
    const { tunnels, slot, gate } = parts;
    this.#mainChannel = parts.mainChannel;
    this.#secret = secret;
    this.#onActivity = onActivity;
    this.objects = new ObjectQuestions(tunnels, slot, async (request) => this.#runOf(request));
    this.#server = createServer({
      IncomingMessage: CellMessage,
      requireHostHeader: false, // the request line has the full URL
      maxHeaderSize: 128 * 1024,
      requestTimeout: 0,
      keepAliveTimeout: 60_000,
    });
    this.#sockets = createSocketServer((socket) => {
      traffic.add(socket);
      this.#server.emit("connection", heldAt(gate, socket));
    });
    this.#sockets.maxConnections = protocolLimits.connections;
    this.#server.on("request", (request, response) => {
      const fail = (): void => {
        if (response.headersSent) response.destroy();
        else refuse(response, "The platform failed to answer. See its log for the reason.");
      };
      whileAnswering(response, fail, () => this.#serve(request, response));
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      unawaited(this.#upgrade(request, socket, head));
    });
    this.#server.on("connect", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      const host = rpcHostOf(secret, request.url ?? "");
      if (tunnels !== undefined && host !== undefined) tunnels.join(host, socket, head);
      else endWith(socket, "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    });
  }

  async listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const { backlog } = protocolLimits;
      this.#sockets.on("error", reject).listen({ path, backlog }, () => resolve());
    });
  }

  close(): void {
    this.objects.calls.close();
    this.#sockets.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Allows the cell to load a script. */
  offer(script: CellScript): void {
    if (this.#scripts.get(script.id) !== script) this.#scripts.set(script.id, script);
  }

  begin(token: string, hooks: RunHooks): void {
    this.#runs.set(token, hooks);
  }

  /** Ends an answered run after the time for work that it left running. */
  endLater(token: string): void {
    const hooks = this.#runs.get(token);
    if (hooks === undefined) return;
    this.#runs.delete(token);
    this.#late.put(token, hooks.answered?.() ?? hooks, performance.now());
    for (const child of this.#takeChildren(token)) this.endLater(child);
  }

  end(token: string): void {
    this.#runs.delete(token);
    for (const child of this.#takeChildren(token)) this.end(child);
  }

  #takeChildren(token: string): readonly string[] {
    const children = this.#children.get(token);
    if (children === undefined) return [];
    this.#children.delete(token);
    for (const child of children) this.#endCall(child);
    return children;
  }

  #endCall(token: string): void {
    this.#ends.get(token)?.();
    this.#ends.delete(token);
  }

  #find(token: string): RunHooks | undefined {
    const running = this.#runs.get(token);
    if (running !== undefined) return running;
    const now = performance.now();
    const late = this.#late.get(token, now);
    if (typeof late !== "function") return late;
    const hooks = late();
    this.#late.put(token, hooks, now);
    return hooks;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.#onActivity();
    this.requests++;
    if (hasBody(request)) goOnAfter(request);
    const url = urlOf(request);
    if (url === undefined) {
      refuse(response, "The URL cannot be fetched.");
      return;
    }
    const token = request.headers[cellHeaders.run];
    if (request.headers[cellHeaders.control] !== this.#secret) unawaited(this.#fetch(url, request, response));
    else if (typeof token === "string" && url.pathname.startsWith("/object"))
      unawaited(this.objects.answer(url, token, request, response));
    else if (typeof token === "string") unawaited(this.#control(url.pathname, token, request, response));
    else unawaited(this.#load(url.pathname, response));
  }

  async #fetch(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const message = objectMessageIn(request.headers);
      if (message !== undefined) {
        const answer = await this.objects.take(request.headers[cellHeaders.run], message);
        response.writeHead(200).end(answer);
        return;
      }
      const run = await this.#runOf(request);
      const what = request.headers[cellHeaders.channel];
      if (run === undefined) refuse(response, "This fetch belongs to no request in progress.");
      else if (typeof what === "string" && run.native !== undefined) run.native(what, request, response);
      else run.fetch(url, request, response);
    } catch (error) {
      refuse(response, refusalText(error));
    }
  }

  /** Finds the run that a request belongs to. The hooks of a dispatched run are made at its first request. */
  async #runOf(request: IncomingMessage): Promise<RunHooks | undefined> {
    if (this.#mainChannel?.isCurrent === false && !(await this.#mainChannel.becomesCurrent()))
      throw new Refusal(outdated);
    const { headers } = request;
    const childText = headers[cellHeaders.child];
    const token = headers[cellHeaders.run] ?? takeRunProtocol(request);
    // The header of a channel holds the channel's token and then the id of the run.
    if (childText === undefined || headers[cellHeaders.outcome] !== this.#secret)
      return typeof token === "string" ? this.#ofToken(token.split(" ", 1)[0]!) : undefined;
    const child = readChild(headerText("the dispatch", childText));
    const known = this.#find(child.child);
    if (known !== undefined) return known;
    const hooks = await this.#find(child.run)?.child?.(child);
    return hooks && this.#begunFirst(child.run, child.child, hooks);
  }

  /** `depth` is the number of runs of the cell that this one has begun, one below the other. */
  #ofToken(token: string, depth = 0): RunHooks | undefined | Promise<RunHooks | undefined> {
    const known = this.#find(token);
    if (known !== undefined) return known;
    if (this.local !== undefined && isLocalRun(token)) return this.#begunLocally(token, this.local, depth);
    return this.standing === undefined ? undefined : this.#stand(token, this.standing);
  }

  /** The hooks of a run that a call in the cell has begun: the run that called must have a binding for the call. */
  async #begunLocally(
    token: string,
    local: NonNullable<GatewayServer["local"]>,
    depth: number,
  ): Promise<RunHooks | undefined> {
    const call = depth > hopsMax ? undefined : await local(token);
    if (call === undefined || call.run === token) return undefined;
    const reference = readReference(encodeURIComponent(call.reference));
    // The run that called may be one that the cell has begun, too, and that has sent nothing yet.
    const caller = isLocalRun(call.run) ? await this.#ofToken(call.run, depth + 1) : this.#find(call.run);
    const hooks = await (await caller?.object?.(call.binding, reference))?.hooks();
    return hooks && this.#begunFirst(call.run, token, hooks);
  }

  /** Two of the first requests of a run may have arrived at once. */
  #begunFirst(parent: string, token: string, hooks: RunHooks): RunHooks {
    const first = this.#find(token);
    if (first === undefined) this.#beginChild(parent, token, hooks);
    return first ?? hooks;
  }

  async #stand(
    token: string,
    standing: NonNullable<GatewayServer["standing"]>,
  ): Promise<RunHooks | undefined> {
    const hooks = await standing(token);
    if (hooks !== undefined && this.#find(token) === undefined)
      this.#late.put(token, hooks, performance.now());
    return this.#find(token) ?? hooks;
  }

  #beginChild(parent: string, token: string, hooks: RunHooks): void {
    if (!this.#runs.has(parent)) {
      this.#late.put(token, hooks, performance.now());
      return;
    }
    this.begin(token, hooks);
    const siblings = this.#children.get(parent);
    if (siblings === undefined) this.#children.set(parent, [token]);
    else siblings.push(token);
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    this.#onActivity();
    socket.on("error", () => socket.destroy());
    try {
      const url = urlOf(request);
      const run = await this.#runOf(request);
      if (url === undefined || run?.upgrade === undefined)
        throw new MalformedError("A WebSocket cannot be opened from here.");
      request.rawHeaders = withoutExtensions(request.rawHeaders);
      const paced = new PacedSocket(socket as Socket, run.accountId ?? "", this.webSockets, false);
      paced.on("error", () => paced.destroy());
      run.upgrade(url, request, paced, head);
    } catch (error) {
      const message = refusalText(error);
      const headers = [...errorHeaders({ message }), "connection", "close", "content-length", "0"];
      endWith(socket, responseHead(403, "Forbidden", headers));
    }
  }

  /** Answers a dispatch or a method call for which the system worker needs a script. */
  async #control(
    path: string,
    token: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      if (path === "/nested-end") {
        this.#endCall(token);
        response.writeHead(204).end();
        return;
      }
      const run = await this.#runOf(request);
      const binding = headerText("the binding", request.headers[cellHeaders.binding]);
      const answer =
        path === "/dispatch"
          ? await this.#dispatch(run, binding, request)
          : await this.#nest(run, token, binding);
      if (answer === undefined) throw new MalformedError("This call belongs to no request in progress.");
      this.#answer(answer, response);
    } catch (error) {
      if (!response.headersSent) response.writeHead(403).end(refusalText(error));
    }
  }

  /** Limits the code in transit: a cell that does not read it must not fill the memory of this process. */
  #answer(answer: unknown, response: ServerResponse): void {
    if (this.#codeBytes > protocolLimits.codeBytes) {
      response.writeHead(503).end("too much code is being sent to this cell");
      return;
    }
    const text = JSON.stringify(answer);
    this.#codeBytes += text.length;
    this.loadedBytes += text.length;
    response.once("close", () => (this.#codeBytes -= text.length));
    response.end(text);
  }

  async #nest(run: RunHooks | undefined, parent: string, binding: string): Promise<object | undefined> {
    const nested = await run?.nested?.(binding);
    if (nested === undefined) return undefined;
    const { script, entrypoint, hooks } = nested;
    this.offer(script);
    const token = randomUUID();
    this.#beginChild(parent, token, hooks);
    const isTimed = nested.ended !== undefined && this.#runs.has(parent);
    if (isTimed) this.#ends.set(token, () => nested.ended?.());
    return { id: script.id, account: script.accountId, run: token, entrypoint, isTimed };
  }

  async #dispatch(
    run: RunHooks | undefined,
    binding: string,
    { headers }: IncomingMessage,
  ): Promise<object | undefined> {
    const dispatched = await run?.dispatch?.(
      binding,
      headerText("the dispatch", headers[cellHeaders.dispatch]),
      headerText("the outbound parameters", headers[cellHeaders.outbound] ?? ""),
    );
    if (dispatched === undefined) return undefined;
    const { script, isWatched, isLasting } = dispatched;
    this.offer(script);
    this.dispatched.set(script.id, script.owner);
    // The code goes along with the first dispatch, because the cell will need it next.
    const hasCode = (): boolean => isWatched || this.#sent.has(script.id);
    if (!hasCode()) await this.room?.();
    const code = hasCode() ? undefined : this.#codeOf(script);
    return { id: script.id, account: script.accountId, isWatched, isLasting, code };
  }

  async #load(path: string, response: ServerResponse): Promise<void> {
    const script = this.#scripts.get(scriptIdOf(path));
    if (script === undefined) {
      response.writeHead(404).end("this script was not offered to this cell");
      return;
    }
    await this.room?.();
    this.#answer(this.#codeOf(script), response);
  }

  #codeOf(script: CellScript): unknown {
    this.loads++;
    this.#sent.set(script.id, true);
    return loadable(script);
  }
}

/** Makes the script's fetch throw an error with this message. Never throws. */
export function refuse(response: ServerResponse, message: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(403, [...errorHeaders({ message }), "content-length", "0"]).end();
}
