import { IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { Socket } from "node:net";
import { PassThrough } from "node:stream";

const noSocket = new Socket();

/** A GET request without a body, for the handlers of the edge. Headers are alternating names and values. */
export function getRequest(path: string, rawHeaders: string[]): IncomingMessage {
  const request = new IncomingMessage(noSocket);
  request.method = "GET";
  request.url = path;
  request.rawHeaders = rawHeaders;
  request.complete = true;
  request.push(null);
  return request;
}

/** A response that is read here instead of sent: first its head, then its body as a stream. */
export class ReceivedResponse extends PassThrough {
  status = 0;
  readonly headers = new Map<string, string>();
  readonly #head = Promise.withResolvers<void>();
  statusMessage = "";

  constructor() {
    super();
    this.on("error", () => {}); // the reader gets the error
    this.on("close", () => this.#head.reject(new Error("the answer ended before its head")));
    this.#head.promise.catch(() => {});
  }

  asServerResponse(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  /** Resolves once the status and headers have arrived. Rejects when the response ends before. */
  get head(): Promise<void> {
    return this.#head.promise;
  }

  get headersSent(): boolean {
    return this.status !== 0;
  }

  writeHead(
    status: number,
    ...more: [string, (string[] | OutgoingHttpHeaders)?] | [(string[] | OutgoingHttpHeaders)?]
  ): this {
    const headers = (typeof more[0] === "string" ? more[1] : more[0]) ?? [];
    const pairs = Array.isArray(headers)
      ? headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : []))
      : Object.entries(headers).map(([name, value]) => [name, [value ?? []].flat().join(", ")] as const);
    for (const [name, value] of pairs) this.headers.set(name.toLowerCase(), value);
    this.status = status;
    this.#head.resolve();
    return this;
  }

  flushHeaders(): void {}
  addTrailers(): void {}
}
