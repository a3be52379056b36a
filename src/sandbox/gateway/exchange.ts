import type { Readable, Writable } from "node:stream";
import type { Dispatcher } from "undici";
import { parseThrown } from "./cell-messages.ts";
import type { CellRun } from "./cell-run.ts";
import { cellHeaders, type RunMetadata } from "../protocol.ts";
import { asciiJson } from "../../platform/util/ascii-json.ts";
import { breakOff } from "../../platform/util/raw-http.ts";
import { reasonPhrase } from "../../platform/util/reason-phrase.ts";

/** `again` returns the same body once more after its first stream has ended, or undefined if that is impossible. */
export type CellBody = Uint8Array | (Readable & { again?(): Readable | undefined });

/** The same body once more; undefined if that is impossible. */
export const bodyAgain = (body: CellBody): CellBody | undefined =>
  body instanceof Uint8Array ? body : body.again?.();

/** A request for a script, as it is written to the cell's socket. */
export interface CellRequest {
  method: string;
  /** Path and query. */
  path: string;
  /** Names and values in turn; the first is the host. */
  headers: readonly string[];
  body: CellBody | null;
  /** JSON in ASCII that the script sees as `request.cf`. */
  cf?: string;
  /** For the script's wrapper. */
  metadata?: Omit<RunMetadata, "selvedgeRun" | "script" | "visitor" | "workflowStream">;
}

/** Encodes metadata for a header, as JSON in ASCII. */
export const encodeMetadata = (metadata: RunMetadata): string => asciiJson(metadata);

/** The part of `ServerResponse` that answers are written to. */
export type Answerable = Writable & {
  readonly headersSent: boolean;
  writeHead(status: number, text: string, headers: string[]): unknown;
};

/** Receives the answer of a cell: a response of the edge's listener, or of the gateway. */
export interface Sink {
  response: Answerable;
  /** Converts the script's headers for the sink's client. */
  headers(raw: readonly string[], status: number): string[];
}

/** An exception of a script, as the system worker reports it. */
export interface Thrown {
  name: string;
  message: string;
  stack: string | undefined;
}

/** Maximum size of an answer's headers. */
export const headerBytesMax = 128 * 1024;
const tooManyHeaders: Thrown = {
  name: "Error",
  message: `The response has more than ${headerBytesMax / 1024} KiB of headers.`,
  stack: undefined,
};

const unsendableReasons: Record<string, string> = {
  ERR_HTTP_INVALID_STATUS_CODE: "HTTP does not allow its status",
  ERR_HTTP2_STATUS_INVALID: "HTTP/2 does not allow its status",
  ERR_HTTP2_STATUS_101: "HTTP/2 does not allow its status",
  ERR_INVALID_CHAR: "HTTP does not allow characters of its headers or its status text",
  ERR_HTTP2_INVALID_CONNECTION_HEADERS: "HTTP/2 does not allow its headers",
  ERR_HTTP2_HEADER_SINGLE_VALUE: "HTTP/2 allows one of its headers only once",
};

/** The answer cannot be expressed in the visitor's version of HTTP, for example a fetched status of 999. */
const unsendable = (error: unknown): Thrown => ({
  name: "Error",
  message: `The response cannot be sent: ${unsendableReasons[String((error as NodeJS.ErrnoException).code)] ?? "HTTP does not allow it"}`,
  stack: undefined,
});

/** undici's errors about an answer that is malformed or shorter than its content-length. */
const notHttp: ReadonlySet<string> = new Set(["HTTPParserError", "ResponseContentLengthMismatchError"]);

const heldBytesMax = 64 * 1024;
const textBytesMax = 4 * 1024;
/** Maximum size of the JSON of an exception. */
export const thrownBytesMax = 256 * 1024;

/**
 * Sends a request into a cell and streams the answer to the sink. A short answer is buffered until it is
 * complete, so that a cell that dies meanwhile leaves no partial answer. Resolves with the script's
 * exception, if it threw one. Rejects when the cell breaks the connection, and breaks the sink's connection
 * if a part was sent. Sets the run's controller, which aborts the exchange.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: CellRequest,
  sink: Sink,
  secret: string,
  onActivity: () => void,
  cellRun: Pick<CellRun, "controller" | "hasAnswer">,
): Promise<Thrown | undefined> {
  const { response } = sink;
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let held: Buffer[] | undefined;
    let thrown: Buffer[] | undefined;
    let thrownBytes = 0;
    let head: { status: number; text: string; headers: string[] } | undefined;
    const abandon = (): void => controller?.abort(new Error("the visitor left"));
    const resume = (): void => controller?.resume();
    const settle = (): void => {
      response.off("close", abandon);
      response.off("drain", resume);
    };
    /** Writes the head. Returns false if HTTP does not allow it; the script then counts as having thrown. */
    const begin = (): boolean => {
      try {
        response.writeHead(head!.status, head!.text, head!.headers);
      } catch (error) {
        settle();
        resolve(unsendable(error));
        return false;
      }
      head = undefined;
      return true;
    };
    response.on("close", abandon);
    response.on("drain", resume);
    dispatcher.dispatch(optionsOf(request), {
      onRequestStart(started) {
        controller = started;
        cellRun.controller = started;
        if (response.destroyed) abandon();
      },
      onResponseStart(started, status, headers, statusText) {
        if (status < 200) return;
        cellRun.hasAnswer = true;
        onActivity();
        if (headers[cellHeaders.outcome] === secret) {
          thrown = [];
          return;
        }
        const raw = (started.rawHeaders as Buffer[]).map((each) => each.toString("latin1"));
        head = {
          status,
          text: reasonPhrase(status, statusText),
          headers: sink.headers(withoutInternal(raw), status),
        };
        if (Number(headers["content-length"] ?? Number.NaN) <= heldBytesMax) held = [];
        else if (!begin()) started.abort(new Error("the answer cannot be sent"));
      },
      onResponseData(started, chunk) {
        onActivity();
        if (thrown !== undefined) {
          thrownBytes += chunk.length;
          if (thrownBytes <= thrownBytesMax) thrown.push(chunk);
        } else if (held !== undefined) held.push(chunk);
        else if (!response.write(chunk)) started.pause();
      },
      onResponseEnd() {
        settle();
        if (thrown !== undefined) {
          resolve(parseThrown(Buffer.concat(thrown)));
          return;
        }
        if (head !== undefined && !begin()) return;
        // Node sends a string together with the head in one write; a buffer takes a second write.
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
        // Headers that workerd passes on from elsewhere may be invalid in HTTP.
        if (!response.headersSent && notHttp.has(error.name)) {
          resolve(unsendable(error));
          return;
        }
        reject(error);
        // Breaking the connection off is the only way to show that a part is missing.
        if (response.headersSent) breakOff(response);
      },
    });
  });
}

/** Only TLS uses `servername`. Without it undici parses the Host header of each request. */
const optionsOf = ({
  method,
  path,
  headers,
  body,
}: CellRequest): Dispatcher.DispatchOptions & { servername: string } => ({
  method,
  path,
  headers: headers as string[], // undici does not change it
  body,
  servername: "cell",
});

export function withoutInternal(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    if (!raw[i]!.toLowerCase().startsWith(cellHeaders.prefix)) headers.push(raw[i]!, raw[i + 1]!);
  }
  return headers;
}
