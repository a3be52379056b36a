import { forRun, neededRun, orderSocket } from "../../../sandbox/worker/run.ts";
import { amongRequests } from "../../../sandbox/worker/concurrency.ts";
import { cellHeaders } from "../../../sandbox/protocol.ts";

/*
 * `connect()` of cloudflare:sockets. Data from the peer is the body of one answer of the gateway; each write
 * of the script is a request (workers/runtime/sockets/socket.ts). Native functions are saved before the script's code
 * is loaded.
 */
const NativeURL = URL;
const Identity = IdentityTransformStream;
const [NativePromise, NativeTypeError] = [Promise, TypeError];
const { apply } = Reflect;
const [toText, toNumber] = [String, Number];
const getHeader = Headers.prototype.get;
const test = RegExp.prototype.test;
const startTimer = globalThis.setTimeout.bind(globalThis);
const Bytes = Uint8Array;
/** Most sockets receive little; busy ones are read in larger chunks. */
const [chunkBytesMin, chunkBytesMax] = [16 * 1024, 256 * 1024];

type Transport = "off" | "on" | "starttls";
export interface SocketOptions {
  secureTransport?: Transport;
  allowHalfOpen?: boolean;
  highWaterMark?: number;
}
export interface SocketAddress {
  hostname: string;
  port: number;
}
interface SocketInfo {
  remoteAddress: string;
  localAddress: undefined;
}

/** The initial state of a socket. */
interface Beginning {
  /** The token of its run. */
  run: string;
  address: SocketAddress;
  transport: Transport;
  highWaterMark: number | undefined;
  /** Whether it belongs to a Node stream, which may be reading when TLS starts. */
  isOfNode: boolean;
  allowHalfOpen: boolean;
  /** Opens the connection. The body of the answer is the data from the peer. */
  open: () => Promise<Response>;
}

class Deferred<T> {
  resolve!: (value: T) => void;
  reject!: (error: unknown) => void;
  readonly promise = new NativePromise<T>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  constructor() {
    this.promise.catch(() => {}); // a script need not handle it
  }
}

/** Copies chunks to the end, one after the other. */
async function carry(
  reader: ReadableStreamBYOBReader,
  take: (chunk: Uint8Array) => Promise<unknown>,
): Promise<void> {
  let size = chunkBytesMin;
  let buffer = new Bytes(size);
  for (;;) {
    const { done, value } = await reader.read(buffer);
    if (done) return;
    await take(value);
    const isFull = value.length === size && size < chunkBytesMax;
    buffer = isFull ? new Bytes((size *= 2)) : new Bytes(value.buffer);
  }
}

const closedText = "This WritableStream has been closed.";

let begin: (beginning: Beginning) => Socket;

/** The class of the public API. Only `connect` and `startTls` create instances. */
export class Socket {
  readonly #run: string;
  readonly #address: SocketAddress;
  readonly #transport: Transport;
  readonly #highWaterMark: number | undefined;
  readonly #isOfNode: boolean;
  readonly #allowHalfOpen: boolean;
  readonly #opened = new Deferred<SocketInfo>();
  readonly #closed = new Deferred<void>();
  readonly #fromScript: IdentityTransformStream;
  readonly #toScript = new Identity();
  /** The wrapper's ends of the two streams. */
  readonly #reader: ReadableStreamBYOBReader;
  readonly #writer: WritableStreamDefaultWriter = this.#toScript.writable.getWriter();
  #id = "";
  #chunks = 0;
  #lastWrite: Promise<unknown> = NativePromise.resolve();
  /** Why the writable side no longer accepts data. */
  #leaving: "closing" | "upgrading" | undefined;
  #isUpgraded = false;

  private constructor({ run, address, transport, highWaterMark, isOfNode, allowHalfOpen, open }: Beginning) {
    this.#allowHalfOpen = allowHalfOpen;
    this.#isOfNode = isOfNode;
    this.#run = run;
    this.#address = address;
    this.#transport = transport;
    this.#highWaterMark = highWaterMark;
    this.#fromScript = highWaterMark === undefined ? new Identity() : new Identity({ highWaterMark });
    this.#reader = this.#fromScript.readable.getReader({ mode: "byob" });
    this.#begin(open)
      .catch((error: unknown) => this.#fail(error))
      .catch(() => {});
  }

  static {
    begin = (beginning) => new Socket(beginning);
  }

  get readable(): ReadableStream {
    return this.#toScript.readable;
  }
  get writable(): WritableStream {
    return this.#fromScript.writable;
  }
  get opened(): Promise<SocketInfo> {
    return this.#opened.promise;
  }
  get closed(): Promise<void> {
    return this.#closed.promise;
  }
  get upgraded(): boolean {
    return this.#isUpgraded;
  }
  get secureTransport(): Transport {
    return this.#transport;
  }

  /** Closes the connection after pending writes. */
  close(): Promise<void> {
    if (this.#leaving === undefined) {
      this.#leaving = "closing";
      this.#close()
        .catch((error: unknown) => this.#fail(error))
        .catch(() => {});
    }
    return this.#closed.promise;
  }

  startTls({ expectedServerHostname }: { expectedServerHostname?: string } = {}): Socket {
    if (this.#transport === "on") throw new NativeTypeError("Cannot startTls on a TLS socket.");
    if (this.#transport !== "starttls")
      throw new NativeTypeError(
        "The `secureTransport` socket option must be set to 'starttls' for startTls to be used.",
      );
    if (this.#leaving === "upgrading")
      throw new NativeTypeError("startTls has already been called on this socket.");
    if (this.#leaving === "closing")
      throw new NativeTypeError("The connection was closed before startTls could be started.");
    if (!this.#isOfNode && (this.readable.locked || this.writable.locked))
      throw new NativeTypeError("startTls takes a socket whose readable and writable are not locked.");
    this.#leaving = "upgrading";
    const servername = toText(expectedServerHostname ?? "");
    return begin({
      run: this.#run,
      address: this.#address,
      transport: "on",
      highWaterMark: this.#highWaterMark,
      isOfNode: this.#isOfNode,
      allowHalfOpen: this.#allowHalfOpen,
      open: async () => {
        await this.#opened.promise;
        await this.#flush();
        this.#isUpgraded = true;
        this.#closed.resolve();
        return this.#order({ do: "tls", id: this.#id, servername }, null);
      },
    });
  }

  /** Sends an order for this socket's own run, not the current one. */
  async #order(order: object, body: Uint8Array | null): Promise<Response> {
    return forRun(this.#run, () => orderSocket(order, body));
  }

  async #begin(open: () => Promise<Response>): Promise<void> {
    const answer = await amongRequests(this.#run, open);
    this.#id = apply(getHeader, answer.headers, [cellHeaders.socket]) as string;
    const { hostname, port } = this.#address;
    this.#opened.resolve({ remoteAddress: `${hostname}:${port}`, localAddress: undefined });
    await this.#watch(this.#receive(answer.body!), this.#send());
  }

  /** Copies data from the peer. A script that does not read can still write. */
  async #receive(body: ReadableStream<Uint8Array>): Promise<void> {
    const writer = this.#writer;
    let isWanted = true;
    await carry(body.getReader({ mode: "byob" }), async (chunk) => {
      if (!isWanted) return;
      try {
        await writer.write(chunk);
      } catch {
        isWanted = false;
      }
    });
    if (isWanted) writer.close().catch(() => {}); // read on demand
  }

  /** Closes the socket when both sides have ended, or when `allowHalfOpen` is false and the peer has. */
  async #watch(received: Promise<void>, sent: Promise<void>): Promise<void> {
    // A failed write need not end reading.
    sent.catch((reason: unknown) => this.#reader.cancel(reason)).catch(() => {});
    await received;
    if (this.#allowHalfOpen) await sent;
    if (this.#leaving !== undefined) return;
    this.#leaving = "closing";
    await this.#reader.cancel(new NativeTypeError(closedText));
    this.#closed.resolve();
  }

  /** Sends the script's writes one by one. Not as a stream, because that would keep a request open. */
  async #send(): Promise<void> {
    try {
      await carry(this.#reader, (chunk) => {
        this.#chunks++;
        return (this.#lastWrite = this.#order({ do: "write", id: this.#id }, chunk));
      });
    } catch (error) {
      // `#flush` ends the loop this way.
      if (this.#leaving === undefined) throw error;
    }
    if (this.#leaving === undefined) await this.#order({ do: "end", id: this.#id }, null);
  }

  /** Resolves when everything written so far has been sent, and allows no more writes. */
  async #flush(): Promise<void> {
    let seen: number;
    do {
      seen = this.#chunks;
      await this.#lastWrite;
      await new NativePromise<void>((resolve) => startTimer(resolve, 0));
    } while (seen !== this.#chunks);
    await this.#reader.cancel(new NativeTypeError(closedText));
  }

  async #close(): Promise<void> {
    await this.#opened.promise;
    try {
      await this.#flush();
      await this.#order({ do: "close", id: this.#id }, null);
    } catch {
      // closed already
    }
    this.#closed.resolve();
  }

  #fail(reason: unknown): void {
    this.#opened.reject(reason);
    this.#closed.reject(reason);
    this.#leaving ??= "closing";
    this.#reader.cancel(reason).catch(() => {});
    this.#writer.abort(reason).catch(() => {});
  }
}

export function connect(address: string | SocketAddress, options: SocketOptions = {}): Socket {
  return connectTo(address, options);
}

/** `servername`, for a Node stream, is the name in the certificate if it is not the host. */
export function connectTo(
  given: string | SocketAddress,
  { secureTransport: transport = "off", highWaterMark, ...options }: SocketOptions,
  servername?: string,
): Socket {
  const run = neededRun();
  const address = addressOf(given);
  if (transport !== "off" && transport !== "on" && transport !== "starttls")
    throw new NativeTypeError(`Unsupported value in secureTransport socket option: ${toText(transport)}`);
  const allowHalfOpen = options.allowHalfOpen === true;
  const order = { do: "open", ...address, transport, allowHalfOpen, servername: servername ?? "" };
  return begin({
    run,
    address,
    transport,
    highWaterMark,
    isOfNode: servername !== undefined,
    allowHalfOpen,
    open: () => forRun(run, () => orderSocket(order, null)),
  });
}

const unsupported = "Specified address is empty string, contains unsupported characters or is too long.";

function addressOf(given: string | SocketAddress): SocketAddress {
  if (typeof given === "object" && given !== null) return checked(toText(given.hostname), given.port);
  const url = parse(toText(given));
  if (url.hostname === "") throw new NativeTypeError("Specified address is missing hostname.");
  if (url.port === "") throw new NativeTypeError("Specified address is missing port.");
  return checked(url.hostname, url.port);
}

function parse(text: string): URL {
  try {
    return new NativeURL(`fake://${text}`);
  } catch {
    throw new NativeTypeError("Specified address could not be parsed.");
  }
}

function checked(hostname: string, given: unknown): SocketAddress {
  const port = toNumber(given);
  if (hostname.length > 255 || !(apply(test, /^[\w.:[\]-]+$/, [hostname]) as boolean))
    throw new NativeTypeError(unsupported);
  if (!(port >= 1 && port <= 65535 && port % 1 === 0))
    throw new NativeTypeError(`Expected a port from 1 to 65535 but received ${toText(given)}.`);
  return { hostname, port };
}
