import { connectTo, type Socket as OurSocket } from "./sockets.ts";

/*
 * Makes `node:net`, and `node:tls` on top of it, use the platform's sockets. workerd's own implementation
 * opens connections without a run, so this replaces the handle that it works with and keeps the rest.
 */
interface Handle {
  socket: OurSocket;
  writer: WritableStreamDefaultWriter;
  reader: Pick<ReadableStreamBYOBReader, "read" | "releaseLock">;
  bytesRead: number;
  bytesWritten: number;
  reading: boolean;
  options: { host: string; port: number; addressType: number };
}
interface Options {
  host?: string;
  port?: unknown;
  path?: unknown;
  family?: number;
  hints?: number;
  lookup?: Lookup;
  servername?: string;
}
type LookedUp = (error: Error | null, address: string, family: number) => void;
type Lookup = (host: string, options: object, done: LookedUp) => void;
type Callback = () => void;

/** The used members of a `node:net` socket; names with an underscore are workerd's internals. */
interface NodeSocket {
  readonly destroyed: boolean;
  allowHalfOpen: boolean;
  connecting: boolean;
  encrypted?: boolean;
  servername?: string | null;
  autoSelectFamilyAttemptedAddresses: string[];
  _aborted?: boolean;
  _parentWrap: NodeSocket | null;
  _handle: Handle | null;
  _host: string | null;
  _sockname: object | null;
  _unrefTimer(): void;
  _undestroy(): void;
  once(event: string, listener: Callback): unknown;
  emit(event: string, ...args: unknown[]): unknown;
  destroy(error?: unknown): unknown;
  isPaused(): boolean;
  read(size: number): unknown;
}
interface Net {
  Socket: { prototype: object };
  Server: { prototype: object };
  isIP(text: string): number;
  _normalizeArgs(args: unknown[]): [Options, Callback | null];
}

const NativeError = Error;
const NativeTypeError = TypeError;
const NativePromise = Promise;
const { apply } = Reflect;
const { isArray } = Array;
const toNumber = Number;
const { get, set } = WeakMap.prototype;

interface Peer {
  address: string;
  port: number;
  family: string | undefined;
}
const peers = new WeakMap<NodeSocket, Peer>();

/** Does nothing for scripts without Node compatibility. */
export function useSockets(): void {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } };
  const net = process?.getBuiltinModule?.("node:net") as Net | undefined;
  if (net === undefined) return;
  // The default lookup of a connection; workerd's asks only public DNS.
  const { lookup: usual } = process!.getBuiltinModule!("node:dns") as { lookup: Lookup };
  const { isIP, _normalizeArgs: normalize } = net;
  define(net.Server.prototype, "listen", () => {
    throw new NativeError("Listening for connections (listen() of node:net) is not available here.");
  });
  const prototype = net.Socket.prototype as Record<string, (...args: never[]) => unknown>;
  const { write } = prototype;
  define(prototype, "connect", function connect(this: NodeSocket & { write: unknown }, ...args: unknown[]) {
    // `connect()` of the module passes them in this form already.
    const [options, done] = (isArray(args[0]) ? args[0] : normalize(args)) as [Options, Callback | null];
    if (this.connecting) throw withCode(NativeError, "ERR_SOCKET_CONNECTING", "Socket is already connecting");
    if (this._aborted) throw withCode(NativeError, "ABORT_ERR", "The operation was aborted");
    if (done !== null) this.once("connect", done);
    if (this._parentWrap?.connecting) return this;
    if (options.path !== undefined && options.path !== null)
      throw withCode(
        NativeTypeError,
        "ERR_INVALID_ARG_VALUE",
        "Sockets of the file system are not available here.",
      );
    const port = portOf(options.port);
    if (this.write !== write) this.write = write;
    const previous = this._handle;
    if (previous === null) start(this, options, port);
    else
      again(previous, () => start(this, options, port))
        .catch((thrown: unknown) => this.destroy(thrown))
        .catch(() => {});
    return this;
  });
  define(prototype, "_getpeername", function getPeerName(this: NodeSocket) {
    const peer = this._handle === null ? undefined : (apply(get, peers, [this]) as Peer | undefined);
    return { ...peer };
  });

  function start(socket: NodeSocket, options: Options, port: number): void {
    const { host = "localhost", family, hints, lookup } = options;
    socket._unrefTimer();
    socket.connecting = true;
    const kind = isIP(host);
    if (kind !== 0 || lookup === undefined || lookup === usual) open(socket, options, host, port, kind);
    else
      lookup(host, { family: family ?? 0, hints }, (error, address, found) => {
        socket.emit("lookup", error, address, found, host);
        if (error !== null && error !== undefined) socket.destroy(error);
        else open(socket, options, address, port, isIP(address) || found);
      });
  }
}

function open(socket: NodeSocket, { servername }: Options, host: string, port: number, kind: number): void {
  const hostname = kind === 6 ? `[${host}]` : host;
  const peer: Peer = {
    address: host,
    port,
    family: kind === 4 ? "IPv4" : kind === 6 ? "IPv6" : undefined,
  };
  apply(set, peers, [socket, peer]);
  socket.autoSelectFamilyAttemptedAddresses = [`${hostname}:${port}`];
  socket.emit("connectionAttempt", host, port, kind);
  socket._host = host;
  try {
    const secureTransport = socket.encrypted === true ? "on" : "starttls";
    // A Node stream ends its own side.
    const opened = connectTo(
      { hostname, port },
      { secureTransport, allowHalfOpen: true },
      servername ?? socket.servername ?? "",
    );
    const handle: Handle = {
      socket: opened,
      writer: opened.writable.getWriter(),
      reader: readerOf(opened.readable),
      bytesRead: 0,
      bytesWritten: 0,
      reading: false,
      options: { host, port, addressType: kind },
    };
    socket._handle = handle;
    socket._undestroy();
    socket._sockname = null;
    opened.opened
      .then(
        () => isOpen(socket),
        (error: unknown) => {
          socket.emit("connectionAttemptFailed", host, port, kind, error);
          socket.destroy(error);
        },
      )
      .catch(() => {});
    opened.closed.catch((error: unknown) => socket.destroy(error)).catch(() => {});
  } catch (error) {
    socket.destroy(error);
  }
}

/** A reader that can be released while a read is pending, when TLS starts; the pending read then never settles. */
function readerOf(readable: ReadableStream): Handle["reader"] {
  const reader = readable.getReader({ mode: "byob" });
  let isReleased = false;
  return {
    async read(into) {
      const result = await reader.read(into);
      return isReleased ? new NativePromise(() => {}) : result;
    },
    releaseLock() {
      isReleased = true;
    },
  };
}

function isOpen(socket: NodeSocket): void {
  if (socket.destroyed) return;
  socket.connecting = false;
  socket._sockname = null;
  socket._unrefTimer();
  socket.emit("connect");
  socket.emit("ready");
  if (!socket.isPaused()) socket.read(0);
}

function portOf(given: unknown): number {
  const port = toNumber(given);
  if (given === undefined)
    throw withCode(
      NativeTypeError,
      "ERR_MISSING_ARGS",
      'The "options" or "port" or "path" argument must be specified',
    );
  if ((typeof given === "number" || typeof given === "string") && port >= 0 && port < 65536 && port % 1 === 0)
    return port;
  throw withCode(
    RangeError,
    "ERR_SOCKET_BAD_PORT",
    `Port should be >= 0 and < 65536. Received ${given as string}.`,
  );
}

const withCode = (Kind: ErrorConstructor, code: string, message: string): Error =>
  Object.assign(new Kind(message), { code });

/** A socket may connect again; the previous connection ends first. */
async function again(previous: Handle, connect: () => void): Promise<void> {
  await previous.socket.close().catch(() => {});
  connect();
}

function define(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true });
}
