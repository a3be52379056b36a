import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { AccessRecord, type AccessView, type CfProperties } from "./access-record.ts";
import type { FieldName } from "./declaration.ts";
import type { WriteBytes } from "./write-bytes.ts";
import { fieldsOfCf, fieldsOfConnection } from "./fields.ts";
import { lineFormatter, type LineFormat } from "./line-format.ts";
import type { LineWriter } from "./line-writer.ts";

export interface AccessLogOptions {
  lines: Pick<LineWriter, "add">;
  format: LineFormat;
  /** One in this many requests gets a line. */
  oneIn: number;
}

/** Gets the record of each request, in addition to the log. */
export interface RecordReader {
  /** The fields that the reader needs. */
  fields: ReadonlySet<FieldName>;
  /** Called when the response has closed. */
  take(record: AccessRecord): void;
}

/** Writes a line for each request, or for a sample of them, and passes records to a reader. */
export class AccessLog {
  readonly #lines: Pick<LineWriter, "add"> | undefined;
  readonly #write: WriteBytes<AccessRecord> | undefined;
  readonly #fields: readonly FieldName[];
  readonly #oneIn: number;
  #reader: RecordReader | undefined;
  #needsCf = false;
  #needsConnection = false;
  /** Whether requests get records. While false, the log costs a request only this comparison. */
  isOn = false;

  /** Without options, it writes no lines. */
  constructor(options?: AccessLogOptions) {
    this.#lines = options?.lines;
    this.#write = options && lineFormatter(options.format);
    this.#fields = options?.format.fields ?? [];
    this.#oneIn = options?.oneIn ?? 1;
    this.read(undefined);
  }

  /** From now on passes the record of every request to this reader, which replaces the previous one. */
  read(reader: RecordReader | undefined): void {
    this.#reader = reader;
    this.isOn = this.#lines !== undefined || reader !== undefined;
    const fields = [...this.#fields, ...(reader?.fields ?? [])];
    this.#needsConnection = fields.some((field) => fieldsOfConnection.has(field));
    this.#needsCf = fields.some((field) => fieldsOfCf.has(field));
  }

  /**
   * Begins the record of a request at a time of `performance.now()`. Undefined if nothing needs it. The caller ends it when
   * the response has closed.
   */
  begin(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    ray: string | undefined,
    startMs: number,
  ): AccessRecord | undefined {
    if (!this.isOn) return undefined;
    const hasLine = this.#hasLine();
    if (!hasLine && this.#reader === undefined) return undefined;
    const record = new AccessRecord(request, response, ray, startMs, this.#needsConnection);
    record.hasLine = hasLine;
    return record;
  }

  /** The same for an upgraded connection: its record ends when the connection has closed. */
  beginUpgrade(request: IncomingMessage, socket: Duplex, ray: string): AccessRecord | undefined {
    const record = this.begin(request, undefined, ray, performance.now());
    if (record === undefined) return undefined;
    noteStatus(socket, record);
    socket.on("close", () => this.end(record, performance.now()));
    return record;
  }

  /** Writes a record whose response has closed. */
  end(record: AccessRecord, endMs: number): void {
    if (record.isLeftOut) return;
    record.end(endMs);
    if (record.hasLine) this.#lines!.add(record, this.#write!);
    this.#reader?.take(record);
  }

  /** Notes what the edge has found out about a request. */
  sees(record: AccessRecord, view: AccessView & { describe(): { cf?: CfProperties } }): void {
    record.view = view;
    if (this.#needsCf) record.cf = view.describe().cf;
  }

  /** Whether a request is in the sample. */
  #hasLine(): boolean {
    return this.#lines !== undefined && (this.#oneIn === 1 || Math.random() * this.#oneIn < 1);
  }
}

/** Notes the status of the first response on an upgraded connection, which Node's HTTP server no longer manages. */
function noteStatus(socket: Duplex, record: AccessRecord): void {
  const write = socket.write.bind(socket);
  const end = socket.end.bind(socket);
  const note = (chunk: unknown): void => {
    Object.assign(socket, { write, end });
    const head = chunk instanceof Uint8Array ? headOf(chunk) : String(chunk);
    record.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
  };
  socket.write = (...args: unknown[]) => {
    note(args[0]);
    return write(...(args as [string]));
  };
  socket.end = (...args: unknown[]) => {
    note(args[0]);
    return end(...(args as [string]));
  };
}

const headOf = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(0, 16)).toString("latin1");
