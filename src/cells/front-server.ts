import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { internal } from "./cell-folder.ts";
import type { CellScript } from "./script.ts";
import { loadable } from "./worker-sources.ts";

/** What the front does for a script while one of its requests is handled. */
export interface RunHooks {
  /** The script fetches: `url` is where to. The answer goes to `response`, or `refuse` tells the script why not. */
  fetch(url: URL, request: IncomingMessage, response: ServerResponse): void;
  /** The script opens a WebSocket, or another upgrade. Without this hook it is refused. */
  upgrade?(url: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** The only thing that a cell can reach: its own socket to this process. */
export class FrontServer {
  readonly #server: Server;
  readonly #runs = new Map<string, RunHooks>();
  readonly #scripts = new Map<string, CellScript>();
  readonly #onActivity: () => void;

  constructor(onActivity: () => void) {
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
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.#onActivity();
    const url = parse(request.url ?? "");
    if (url === undefined) {
      refuse(response, "The URL cannot be fetched.");
      return;
    }
    const token = request.headers[internal.run];
    if (token === undefined && url.host === "front") {
      this.#load(decodeURIComponent(url.pathname.slice("/script/".length)), response);
      return;
    }
    const run = typeof token === "string" ? this.#runs.get(token) : undefined;
    if (run === undefined) refuse(response, "This fetch belongs to no request that is being handled.");
    else run.fetch(url, request, response);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#onActivity();
    const url = parse(request.url ?? "");
    const token = request.headers[internal.run];
    const run = typeof token === "string" ? this.#runs.get(token) : undefined;
    if (url === undefined || run?.upgrade === undefined)
      socket.end(
        `HTTP/1.1 403 Forbidden\r\n${internal.error}: A WebSocket cannot be opened from here.\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
      );
    else run.upgrade(url, request, socket, head);
  }

  #load(id: string, response: ServerResponse): void {
    const script = this.#scripts.get(id);
    if (script === undefined) response.writeHead(404).end("no such script");
    else response.end(JSON.stringify(loadable(script)));
  }
}

/** Tells a script that its fetch is refused: it gets an error with this message, which it can catch. */
export function refuse(response: ServerResponse, message: string): void {
  response.writeHead(403, { [internal.error]: message, "content-length": 0 }).end();
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}
