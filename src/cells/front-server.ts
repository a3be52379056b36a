import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { internal } from "./cell-folder.ts";
import type { CellScript } from "./script.ts";
import { loadable } from "./worker-sources.ts";

/** What the front does for a script while one of its requests is handled. */
export interface RunHooks {
  /** The script fetches: `url` is where to. The answer goes to `response`, or `refuse` tells the script why not. */
  fetch(url: URL, request: IncomingMessage, response: ServerResponse): void;
  /** The script calls a method of another script, which a binding leads to. Rejects with what the script is told. */
  nested?(binding: string): Promise<NestedRun>;
  /** The script opens a WebSocket, or another upgrade. Without this hook it is refused. */
  upgrade?(url: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** Another script that runs in the same cell for the sake of a run. */
export interface NestedRun {
  script: CellScript;
  entrypoint: string;
  hooks: RunHooks;
}

/** The only thing that a cell can reach: its own socket to this process. */
export class FrontServer {
  readonly #server: Server;
  readonly #runs = new Map<string, RunHooks>();
  readonly #children = new Map<string, string[]>();
  readonly #scripts = new Map<string, CellScript>();
  readonly #secret: string;
  readonly #onActivity: () => void;

  /** `secret` is what the cell's system worker shows: no script has it. */
  constructor(secret: string, onActivity: () => void) {
    this.#secret = secret;
    this.#onActivity = onActivity;
    this.#server = createServer({
      requireHostHeader: false, // the request line has the whole URL
      maxHeaderSize: 128 * 1024,
      requestTimeout: 0,
      keepAliveTimeout: 60_000,
    });
    this.#server.on("request", (request, response) => this.#serve(request, response));
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
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

  end(token: string): void {
    this.#runs.delete(token);
    const children = this.#children.get(token);
    this.#children.delete(token);
    for (const child of children ?? []) this.end(child);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.#onActivity();
    const url = parse(request.url ?? "");
    if (url === undefined) {
      refuse(response, "The URL cannot be fetched.");
      return;
    }
    const token = request.headers[internal.run];
    if (request.headers[internal.outcome] === this.#secret) {
      if (token === undefined)
        this.#load(decodeURIComponent(url.pathname.slice("/script/".length)), response);
      else void this.#nest(String(token), String(request.headers[internal.binding]), response);
      return;
    }
    const run = typeof token === "string" ? this.#runs.get(token) : undefined;
    if (run === undefined) refuse(response, "This fetch belongs to no request that is being handled.");
    else run.fetch(url, request, response);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#onActivity();
    const url = parse(request.url ?? "");
    const token = request.headers[internal.run] ?? takeRunProtocol(request);
    const run = typeof token === "string" ? this.#runs.get(token) : undefined;
    if (url === undefined || run?.upgrade === undefined)
      socket.end(
        `HTTP/1.1 403 Forbidden\r\n${internal.error}: ${encodeURIComponent("A WebSocket cannot be opened from here.")}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
      );
    else run.upgrade(url, request, socket, head);
  }

  async #nest(token: string, binding: string, response: ServerResponse): Promise<void> {
    try {
      const nested = await this.#runs.get(token)?.nested?.(binding);
      if (nested === undefined) throw new Error("This call belongs to no request that is being handled.");
      const { script, entrypoint, hooks } = nested;
      this.offer(script);
      const run = randomUUID();
      this.begin(run, hooks);
      this.#children.set(token, [...(this.#children.get(token) ?? []), run]);
      response.end(JSON.stringify({ id: script.id, run, entrypoint }));
    } catch (error) {
      response.writeHead(403).end((error as Error).message);
    }
  }

  #load(id: string, response: ServerResponse): void {
    const script = this.#scripts.get(id);
    if (script === undefined) response.writeHead(404).end("it is not offered");
    else response.end(JSON.stringify(loadable(script)));
  }
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
