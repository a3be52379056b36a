import type { IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Session,
} from "node:http2";
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from "node:net";
import { createServer, type SecureContext, type Server } from "node:tls";
import { closeListener, gentleMs, listenAt, type ListenAt } from "../../platform/listen/listen.ts";
import type { CurrentData } from "../../platform/processes/main-channel.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { Logger } from "pino";
import type { Edge } from "../request/listener.ts";
import type { EdgeSettings } from "../http/settings.ts";
import { helloRecordBytes, rememberHello } from "./client-hello.ts";
import { VisitorRequest, VisitorResponse } from "./http2.ts";
import type { TlsCounts } from "./tls-counts.ts";
import type { TicketKeys } from "./ticket-keys.ts";
import type { KeyPair } from "./certificates/x509.ts";

export interface TlsListenerOptions {
  edge: Pick<Edge, "accept" | "serve">;
  settings: EdgeSettings;
  /** The certificate for a server name. */
  contextFor: (serverName: string) => SecureContext;
  /** For visitors without a server name. */
  fallback: KeyPair;
  logger: Logger;
  /** In an edge process: whether every certificate that the main process has acknowledged is known here. */
  mainChannel?: CurrentData | undefined;
  counts?: TlsCounts;
  /** Without it, sessions can be resumed only here and only until this process ends. */
  ticketKeys?: Pick<TicketKeys, "current" | "onChange">;
  onClose?: () => void;
  /** Reads certificates again. */
  onReload?: () => void;
}

const handshakeTimeoutMs = 20_000;
const streamsMax = 256;
const sessionIdContext = "selvedge";

/** The edge over TLS, with HTTP/1.1 and HTTP/2. */
export class TlsListener {
  readonly #options: TlsListenerOptions;
  readonly #http2: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #sockets = new Set<Socket>();
  /** First records of connections during their handshake, by the visitor's address and port. */
  readonly #hellos = new Map<string, Buffer>();
  #listener: TcpServer | undefined;
  #isEnding = false;
  /** While closing: how long a session may wait for its first request. */
  #gentleMs: number | undefined;

  constructor(options: TlsListenerOptions) {
    this.#options = options;
    const { settings, counts } = options;
    if (counts !== undefined) counts.sessions = () => this.#sessions.size;
    this.#http2 = createHttp2Server({
      Http2ServerRequest: VisitorRequest as never,
      Http2ServerResponse: VisitorResponse as never,
      maxSessionMemory: 32,
      // Origins send such headers twice, also over HTTP/1.1.
      strictSingleValueFields: false,
      settings: {
        maxConcurrentStreams: streamsMax,
        maxHeaderListSize: settings.headerBytesMax,
        enablePush: false,
      } as never,
      maxHeaderListPairs: settings.headerCountMax * 2,
      // Limits streams that are reset faster than they are served: CVE-2023-44487.
      streamResetBurst: 1000,
      streamResetRate: 100,
    } as never);
    this.#http2.setTimeout(settings.idleTimeoutMs);
    this.#http2.on("session", (session) => {
      this.#sessions.add(session);
      // GOAWAY comes after the first request, because a client would send none after it.
      session.once("stream", () => this.#isEnding && announceEnd(session));
      if (this.#gentleMs !== undefined) closeSoon(session, this.#gentleMs);
      session.on("close", () => this.#sessions.delete(session));
      session.on("error", () => session.destroy());
      session.setTimeout(settings.idleTimeoutMs, () => session.close());
    });
    this.#http2.on("sessionError", () => {});
    this.#http2.on("request", (request: unknown, response: unknown) =>
      options.edge.serve(request as IncomingMessage, response as ServerResponse),
    );
  }

  async listen(at: ListenAt): Promise<AddressInfo> {
    const { contextFor, counts, edge, fallback, logger, mainChannel, ticketKeys } = this.#options;
    const server = createServer({
      cert: fallback.certificate,
      key: fallback.privateKey,
      SNICallback(name, done) {
        const answer = (): void => {
          try {
            done(null, contextFor(name));
          } catch (error) {
            done(error as Error);
          }
        };
        // If it does not become current, the request is refused.
        if (mainChannel?.isCurrent === false) unawaited(mainChannel.becomesCurrent().then(answer));
        else answer();
      },
      ALPNProtocols: ["h2", "http/1.1"],
      minVersion: "TLSv1.2",
      honorCipherOrder: true,
      handshakeTimeout: handshakeTimeoutMs,
      // Sessions resume only in the context that began them, and Node derives its default from the arguments of
      // the process, which differ between processes of the node.
      sessionIdContext,
      ...(ticketKeys?.current === undefined ? {} : { ticketKeys: ticketKeys.current }),
    });
    ticketKeys?.onChange((keys) => server.setTicketKeys(keys));
    server.on("secureConnection", (socket) => {
      counts?.note(socket);
      const hello = this.#hellos.get(peerOf(socket));
      if (hello !== undefined) rememberHello(socket, hello);
      socket.on("error", () => socket.destroy());
      if (socket.alpnProtocol === "h2") this.#http2.emit("connection", socket);
      else edge.accept(socket);
    });
    server.on("tlsClientError", (error, socket) => {
      if (counts !== undefined) counts.failures++;
      logger.debug({ err: error, client: socket.remoteAddress }, "a TLS handshake failed");
      socket.destroy();
    });
    const listener = createTcpServer({ noDelay: true }, (socket) => this.#peek(socket, server));
    const address = await listenAt(listener, at);
    this.#listener = listener;
    return address;
  }

  /**
   * Reads a visitor's first record, which Node does not expose, and then hands the untouched connection to
   * TLS.
   */
  #peek(socket: Socket, server: Server): void {
    let start: Buffer = Buffer.alloc(0);
    const peer = peerOf(socket);
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#hellos.delete(peer);
    });
    const destroy = (): void => {
      socket.destroy();
    };
    const onReadable = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
      const bytes = helloRecordBytes(start);
      if (bytes === undefined || start.length < bytes) return;
      socket.off("readable", onReadable).off("error", destroy).off("end", destroy);
      socket.setTimeout(0).off("timeout", destroy);
      if (bytes > 0) this.#hellos.set(peer, Buffer.from(start.subarray(0, bytes)));
      socket.unshift(start);
      server.emit("connection", socket);
    };
    socket.on("readable", onReadable).on("error", destroy).on("end", destroy);
    socket.setTimeout(handshakeTimeoutMs).on("timeout", destroy);
  }

  /** Asks visitors to open their next connections elsewhere. Requests of open connections are still served. */
  announceEnd(): void {
    this.#isEnding = true;
    for (const session of this.#sessions) announceEnd(session);
  }

  /** Reads certificates from their files again. */
  reload(): void {
    this.#options.onReload?.();
  }

  /** Stops accepting, finishes running requests until the deadline, and aborts the rest. */
  async close(deadlineMs: number): Promise<void> {
    const listener = this.#listener;
    this.#options.onClose?.();
    if (listener === undefined) return;
    const closed = closeListener(listener);
    this.announceEnd();
    this.#gentleMs = gentleMs(deadlineMs);
    for (const session of this.#sessions) closeSoon(session, this.#gentleMs);
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
      for (const socket of this.#sockets) socket.destroy();
    }, deadlineMs);
    await closed;
    clearTimeout(timer);
  }
}

/** The highest stream id: requests that are on their way are served too (RFC 9113, 6.8). */
const lastStreamId = 2 ** 31 - 1;

function announceEnd(session: ServerHttp2Session): void {
  if (!session.destroyed && !session.closed) session.goaway(constants.NGHTTP2_NO_ERROR, lastStreamId);
}

function closeSoon(session: ServerHttp2Session, afterMs: number): void {
  setTimeout(() => session.close(), afterMs).unref();
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
