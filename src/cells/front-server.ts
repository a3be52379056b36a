import { randomUUID } from "node:crypto";
import { createServer, IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { LRUCache } from "lru-cache";
import { Linger } from "../util/linger.ts";
import { internal } from "./cell-folder.ts";
import type { CellScript } from "./script.ts";
import type { Traffic } from "./traffic.ts";
import { loadable } from "./worker-sources.ts";

/** What the front does for a script while one of its requests is handled. */
export interface RunHooks {
  /** The script fetches: `url` is where to. The answer goes to `response`, or `refuse` tells the script why not. */
  fetch(url: URL, request: IncomingMessage, response: ServerResponse): void;
  /** The script has answered; what it left running goes on for a while, with what this gives. Without it, with these hooks. */
  answered?(): LateRun | undefined;
  /** A snippet's end of its channel wants a body, or has one: `what` says which. */
  native?(what: string, request: IncomingMessage, response: ServerResponse): void;
  /** The script calls a method of another script, which a binding leads to. Rejects with what the script is told. */
  nested?(binding: string): Promise<NestedRun>;
  /** The script dispatches to a customer's: by which binding, and what it says of it. Rejects with what it is told. */
  dispatch?(binding: string, said: string, outbound: string): Promise<Dispatched>;
  /** What the dispatched script may do, when it first asks for something. */
  child?(child: Child): Promise<RunHooks>;
  /** The script opens a WebSocket, or another upgrade. Without this hook it is refused. */
  upgrade?(url: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** A run that has answered: very many are kept for a while, of which hardly any ask for something. */
export type LateRun = RunHooks | (() => RunHooks);

/** Where a dispatch leads. */
export interface Dispatched {
  script: CellScript;
  /** Whether it is to go over the front, which watches it alone. */
  isWatched: boolean;
  /** Whether the answer holds until the configuration changes. */
  isLasting: boolean;
}

/** A dispatch that a script has made in its cell, and that something is now asked for on behalf of. */
export interface Child {
  /** Its own token, and that of the run that dispatched. */
  child: string;
  run: string;
  binding: string;
  said: string;
  outbound: string;
  /** The script's. */
  id: string;
}

/** Another script that runs in the same cell for the sake of a run. */
export interface NestedRun {
  script: CellScript;
  entrypoint: string;
  hooks: RunHooks;
}

/** Time after an answer in which what the script left running may still fetch. */
const afterAnswerMs = 30_000;

/** The only thing that a cell can reach: its own socket to this process. */
export class FrontServer {
  readonly #server: Server;
  readonly #runs = new Map<string, RunHooks>();
  readonly #late = new Linger<LateRun>(afterAnswerMs);
  readonly #children = new Map<string, string[]>();
  /** Those that were asked for lately: a cell loads at once what it is offered. */
  readonly #scripts = new LRUCache<string, CellScript>({ max: 512 });
  /** By id: whether their code has gone to the cell. */
  readonly #sent = new LRUCache<string, true>({ max: 10_000 });
  loads = 0;
  readonly #secret: string;
  readonly #onActivity: () => void;

  /** `secret` is what the cell's system worker shows: no script has it. */
  constructor(secret: string, traffic: Traffic, onActivity: () => void) {
    this.#secret = secret;
    this.#onActivity = onActivity;
    this.#server = createServer({
      IncomingMessage: CellMessage,
      requireHostHeader: false, // the request line has the whole URL
      maxHeaderSize: 128 * 1024,
      requestTimeout: 0,
      keepAliveTimeout: 60_000,
    });
    this.#server.on("connection", (socket: Socket) => traffic.add(socket));
    this.#server.on("request", (request, response) => this.#serve(request, response));
    this.#server.on(
      "upgrade",
      (request: IncomingMessage, socket: Duplex, head: Buffer) => void this.#upgrade(request, socket, head),
    );
    this.#server.on("connect", (_request, socket: Duplex) => {
      socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    });
  }

  async listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject).listen(path, () => resolve());
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** A script that this cell may ask for. */
  offer(script: CellScript): void {
    this.#scripts.set(script.id, script);
  }

  begin(token: string, hooks: RunHooks): void {
    this.#runs.set(token, hooks);
  }

  /** Ends a run that has answered when what it left running has had its time. */
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
    return children;
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
    if (hasBody(request)) goOnAfter(request);
    const url = parse(request.url ?? "");
    if (url === undefined) {
      refuse(response, "The URL cannot be fetched.");
      return;
    }
    const token = request.headers[internal.run];
    if (request.headers[internal.control] !== this.#secret) void this.#fetch(url, request, response);
    else if (token === undefined)
      this.#load(decodeURIComponent(url.pathname.slice("/script/".length)), response);
    else void this.#control(url.pathname, String(token), request, response);
  }

  async #fetch(url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const run = await this.#runOf(request);
      const what = request.headers[internal.channel];
      if (run === undefined) refuse(response, "This fetch belongs to no request that is being handled.");
      else if (typeof what === "string" && run.native !== undefined) run.native(what, request, response);
      else run.fetch(url, request, response);
    } catch (error) {
      refuse(response, (error as Error).message);
    }
  }

  /** The run that a request of a cell is for. One that began inside the cell is made when it first asks for something. */
  async #runOf(request: IncomingMessage): Promise<RunHooks | undefined> {
    const { headers } = request;
    const said = headers[internal.child];
    const token = headers[internal.run] ?? takeRunProtocol(request);
    // A channel says after its own token which of its runs it means.
    if (said === undefined || headers[internal.outcome] !== this.#secret)
      return typeof token === "string" ? this.#find(token.split(" ", 1)[0]!) : undefined;
    const child = JSON.parse(decodeURIComponent(String(said))) as Child;
    const known = this.#find(child.child);
    if (known !== undefined) return known;
    const hooks = await this.#find(child.run)?.child?.(child);
    if (hooks === undefined) return undefined;
    // Two of its first requests may have come at once.
    const first = this.#find(child.child);
    if (first === undefined) this.#beginChild(child.run, child.child, hooks);
    return first ?? hooks;
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
    const url = parse(request.url ?? "");
    const run = await this.#runOf(request).catch(() => undefined);
    if (url === undefined || run?.upgrade === undefined)
      socket.end(
        `HTTP/1.1 403 Forbidden\r\n${internal.error}: ${encodeURIComponent("A WebSocket cannot be opened from here.")}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
      );
    else run.upgrade(url, request, socket, head);
  }

  /** What the system worker asks for on a run's behalf. */
  async #control(
    path: string,
    token: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      const run = await this.#runOf(request);
      const binding = String(request.headers[internal.binding]);
      const answer =
        path === "/dispatch"
          ? await this.#dispatch(run, decodeURIComponent(binding), request)
          : await this.#nest(run, token, binding);
      if (answer === undefined) throw new Error("This call belongs to no request that is being handled.");
      response.end(JSON.stringify(answer));
    } catch (error) {
      response.writeHead(403).end((error as Error).message);
    }
  }

  async #nest(run: RunHooks | undefined, parent: string, binding: string): Promise<object | undefined> {
    const nested = await run?.nested?.(binding);
    if (nested === undefined) return undefined;
    const { script, entrypoint, hooks } = nested;
    this.offer(script);
    const token = randomUUID();
    this.#beginChild(parent, token, hooks);
    return { id: script.id, run: token, entrypoint };
  }

  async #dispatch(
    run: RunHooks | undefined,
    binding: string,
    { headers }: IncomingMessage,
  ): Promise<object | undefined> {
    const dispatched = await run?.dispatch?.(
      binding,
      decodeURIComponent(String(headers[internal.dispatch])),
      decodeURIComponent(String(headers[internal.outbound] ?? "")),
    );
    if (dispatched === undefined) return undefined;
    const { script, isWatched, isLasting } = dispatched;
    this.offer(script);
    // What is dispatched to for the first time is about to be asked for.
    const code = isWatched || this.#sent.has(script.id) ? undefined : this.#codeOf(script);
    return { id: script.id, isWatched, isLasting, code };
  }

  #load(id: string, response: ServerResponse): void {
    const script = this.#scripts.get(id);
    if (script === undefined) response.writeHead(404).end("it is not offered");
    else response.end(JSON.stringify(this.#codeOf(script)));
  }

  #codeOf(script: CellScript): unknown {
    this.loads++;
    this.#sent.set(script.id, true);
    return loadable(script);
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Whoever breaks off reading a body destroys it, and the parser then waits for ever for somebody to read on, also what comes
 * after it on the connection. Of this one the rest is dropped.
 */
class CellMessage extends IncomingMessage {
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    return this.destroyed || super.push(chunk, encoding);
  }
}

/** The connection may stand still when its body is broken off, because too little of it was read. */
function goOnAfter(request: IncomingMessage): void {
  const { socket } = request;
  request.once("close", () => {
    if (!request.complete) socket.resume();
  });
}

/** Tells a script that its fetch is refused: it gets an error with this message, which it can catch. */
export function refuse(response: ServerResponse, message: string): void {
  response.writeHead(403, { [internal.error]: encodeURIComponent(message), "content-length": 0 }).end();
}

const runProtocol = `${internal.run}.`;

/** A WebSocket that a script makes with `new` can say its run among the protocols only; the others stay. */
function takeRunProtocol({ rawHeaders }: IncomingMessage): string | undefined {
  const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && /^sec-websocket-protocol$/i.test(name));
  const offered = rawHeaders[at + 1]?.split(",").map((protocol) => protocol.trim()) ?? [];
  if (at < 0 || offered.at(-1)?.startsWith(runProtocol) !== true) return undefined;
  const token = offered.pop()!.slice(runProtocol.length);
  if (offered.length === 0) rawHeaders.splice(at, 2);
  else rawHeaders[at + 1] = offered.join(", ");
  return token;
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}
