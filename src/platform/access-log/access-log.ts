import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { AccessRecord, type AccessView, type CfProperties } from "./access-record.ts";
import { fieldsOfCf, fieldsOfConnection, lineFormatter, type LineFormat } from "./fields.ts";
import type { LineWriter } from "./line-writer.ts";

export interface AccessLogOptions {
  format: LineFormat;
  /** One request of so many has a line. */
  oneIn: number;
}

/** Writes a line for each request, or for a sample of them. */
export class AccessLog {
  readonly #needsCf: boolean;
  readonly #needsConnection: boolean;
  readonly #lines: Pick<LineWriter, "add">;
  readonly #format: (record: AccessRecord) => string;
  readonly #oneIn: number;

  constructor(lines: Pick<LineWriter, "add">, { format, oneIn }: AccessLogOptions) {
    this.#lines = lines;
    this.#format = lineFormatter(format);
    this.#oneIn = oneIn;
    this.#needsConnection = format.fields.some((field) => fieldsOfConnection.has(field));
    this.#needsCf = format.fields.some((field) => fieldsOfCf.has(field));
  }

  /** Begins the record of a request. Its line is written when the response has closed. Undefined: not in the sample. */
  begin(
    request: IncomingMessage,
    response: ServerResponse,
    ray: string | undefined,
  ): AccessRecord | undefined {
    if (this.#isLeftOut()) return undefined;
    const record = new AccessRecord(request, response, ray, this.#needsConnection);
    response.on("close", () => this.#end(record));
    return record;
  }

  /** The same for a connection that is upgraded: the line is written when it has closed. */
  beginUpgrade(request: IncomingMessage, socket: Duplex, ray: string): AccessRecord | undefined {
    if (this.#isLeftOut()) return undefined;
    const record = new AccessRecord(request, undefined, ray, this.#needsConnection);
    noteStatus(socket, record);
    socket.on("close", () => this.#end(record));
    return record;
  }

  /** Notes what the edge has found out about a request. */
  sees(record: AccessRecord, view: AccessView & { describe(): { cf?: CfProperties } }): void {
    record.view = view;
    if (this.#needsCf) record.cf = view.describe().cf;
  }

  #isLeftOut(): boolean {
    return this.#oneIn > 1 && Math.random() * this.#oneIn >= 1;
  }

  #end(record: AccessRecord): void {
    if (record.isLeftOut) return;
    record.end();
    this.#lines.add(this.#format(record));
  }
}

/** Notes the status of the first answer on a connection that Node's HTTP server gave away. */
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
