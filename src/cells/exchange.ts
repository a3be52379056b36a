import { STATUS_CODES } from "node:http";
import type { Readable, Writable } from "node:stream";
import type { Dispatcher } from "undici";
import { internal } from "./cell-folder.ts";
import type { Said } from "./worker/said.ts";
import { asciiJson } from "../util/ascii-json.ts";

export interface CellRequest {
  method: string;
  /** With its query. */
  path: string;
  /** Names and values in turn; the first is the host. */
  headers: readonly string[];
  body: Readable | null;
  /** What the script sees as `request.cf`, as JSON in ASCII. */
  cf?: string;
  /** What the script's wrapper is told. */
  said?: Omit<Said, "selvedgeRun" | "script" | "visitor" | "lane">;
}

export const encodeSaid = (said: Said): string => asciiJson(said);

/** What the head and the body of an answer are written to: a `ServerResponse` does. */
export type Answerable = Writable & {
  readonly headersSent: boolean;
  writeHead(status: number, text: string, headers: string[]): unknown;
};

/** Where an answer of a cell goes: a response of the edge's listener, or of the front's own sockets. */
export interface Sink {
  response: Answerable;
  /** The headers that the sink's client gets for those of the script. */
  headers(raw: readonly string[], status: number): string[];
}

/** What a script threw, as the system worker tells it. */
export interface Thrown {
  name: string;
  message: string;
  stack: string | undefined;
}

/** Headers of an answer. */
export const headerBytesMax = 128 * 1024;
const tooManyHeaders: Thrown = {
  name: "Error",
  message: `The response has more than ${headerBytesMax / 1024} KiB of headers.`,
  stack: undefined,
};

const heldBytesMax = 64 * 1024;
const textBytesMax = 4 * 1024;
const thrownBytesMax = 64 * 1024;

/**
 * Sends a request into a cell and streams the answer out. A short answer is held until it is whole, so that a cell that dies
 * under it leaves nothing half said. Resolves with what the script threw, if it did; rejects when the cell breaks off, and
 * ends the sink's connection where a part has been sent.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: CellRequest,
  sink: Sink,
  secret: string,
  onActivity: () => void,
): Promise<Thrown | undefined> {
  const { response } = sink;
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let held: Buffer[] | undefined;
    let thrown: Buffer[] | undefined;
    let head: { status: number; text: string; headers: string[] } | undefined;
    const abandon = (): void => controller?.abort(new Error("the visitor left"));
    const resume = (): void => controller?.resume();
    const settle = (): void => {
      response.off("close", abandon);
      response.off("drain", resume);
    };
    const begin = (): void => {
      response.writeHead(head!.status, head!.text, head!.headers);
      head = undefined;
    };
    response.on("close", abandon);
    response.on("drain", resume);
    dispatcher.dispatch(
      {
        method: request.method,
        path: request.path,
        headers: request.headers as string[], // undici does not change it
        body: request.body,
      },
      {
        onRequestStart(started) {
          controller = started;
          if (response.destroyed) abandon();
        },
        onResponseStart(started, status, headers, statusText) {
          if (status < 200) return;
          onActivity();
          if (headers[internal.outcome] === secret) {
            thrown = [];
            return;
          }
          const raw = (started.rawHeaders as Buffer[]).map((each) => each.toString("latin1"));
          head = {
            status,
            text: statusText === undefined || statusText === "" ? (STATUS_CODES[status] ?? "") : statusText,
            headers: sink.headers(withoutInternal(raw), status),
          };
          if (Number(headers["content-length"] ?? Number.NaN) <= heldBytesMax) held = [];
          else begin();
        },
        onResponseData(started, chunk) {
          onActivity();
          if (thrown !== undefined) {
            if (thrown.length * chunk.length < thrownBytesMax) thrown.push(chunk);
          } else if (held !== undefined) held.push(chunk);
          else if (!response.write(chunk)) started.pause();
        },
        onResponseEnd() {
          settle();
          if (thrown !== undefined) {
            resolve(parseThrown(Buffer.concat(thrown)));
            return;
          }
          if (head !== undefined) begin();
          // Node writes a text together with the head, in one piece; a buffer comes after it in one of its own.
          if (held?.length === 1 && held[0]!.length <= textBytesMax)
            response.end(held[0]!.toString("latin1"), "latin1");
          else {
            for (const chunk of held ?? []) response.write(chunk);
            response.end();
          }
          resolve(undefined);
        },
        onResponseError(_started, error) {
          settle();
          if (response.destroyed) {
            resolve(undefined); // the visitor has left
            return;
          }
          if (!response.headersSent && (error as { code?: string }).code === "UND_ERR_HEADERS_OVERFLOW") {
            resolve(tooManyHeaders);
            return;
          }
          reject(error);
          // Only an end that is no proper end says that a part is missing.
          if (response.headersSent) response.destroy();
        },
      },
    );
  });
}

export function withoutInternal(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    if (!raw[i]!.toLowerCase().startsWith(internal.prefix)) headers.push(raw[i]!, raw[i + 1]!);
  }
  return headers;
}

export function parseThrown(bytes: Buffer): Thrown {
  try {
    return JSON.parse(bytes.toString()) as Thrown;
  } catch {
    return { name: "Error", message: "the script threw something very large", stack: undefined };
  }
}
