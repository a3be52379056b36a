import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { cipherName } from "./cipher-name.ts";

/** Properties of `request.cf`. */
export type CfProperties = Readonly<Record<string, unknown>>;

/** The data of a request that the edge has before it chooses a handler. */
export interface AccessView {
  host: string;
  path: string;
  clientAddress: string;
  isTls: boolean;
  /** Set if a script has sent the request. */
  via: object | undefined;
  zone: { id: string; name: string } | undefined;
}

/** A visitor's connection. It is read at the start of the request, because a closed HTTP/2 stream has lost it. */
export interface AccessConnection {
  port: number | undefined;
  /** Undefined without TLS. */
  protocol: string | undefined;
  cipher: string | undefined;
}

function connectionOf({ socket }: IncomingMessage): AccessConnection {
  const tls = "encrypted" in socket ? (socket as TLSSocket) : undefined;
  const cipher = tls?.getCipher();
  return {
    port: socket.remotePort,
    protocol: tls?.getProtocol() ?? undefined,
    cipher: cipher === undefined ? undefined : cipherName(cipher.name),
  };
}

/** The headers of a response, as `writeHead` takes them: an object, or a flat list of names and values. */
export type SentHeaders = Readonly<Record<string, unknown>> | readonly unknown[];

/** A response that counts its body. */
export interface CountedResponse {
  bodyBytes: number;
  /** When the head was written, on the clock of `performance.now()`; 0 before. */
  headAtMs: number;
  /** The arguments of `writeHead`, in addition to the headers that were set before. */
  sentHeaders: SentHeaders | undefined;
}

/** A header of a response whose head was written. `name` is in lower case. */
export function sentHeader(
  response: ServerResponse & Partial<CountedResponse>,
  name: string,
): string | undefined {
  const { sentHeaders = [] } = response;
  const flat = Array.isArray(sentHeaders) ? sentHeaders : Object.entries(sentHeaders).flat();
  for (let i = 0; i < flat.length; i += 2)
    if (String(flat[i]).toLowerCase() === name) return String(flat[i + 1]);
  return response.getHeader(name)?.toString();
}

/**
 * One request's entry in the access log. The parts that handle the request fill in what they learn until the response has
 * closed.
 */
export class AccessRecord {
  /** Times are those of `performance.now()`. */
  readonly startMs: number;
  endMs = 0;
  readonly request: IncomingMessage;
  /** Undefined for an upgraded connection. */
  readonly response: (ServerResponse & Partial<CountedResponse>) | undefined;
  /** At a relay between nodes, the ray of the first node. */
  ray: string | undefined;
  /** Undefined if no chosen field needs it. */
  readonly connection: AccessConnection | undefined;
  view: AccessView | undefined;
  /** Set at the end of a request that the edge did not get to see. */
  peerAddress: string | undefined;
  /** Set when another process of the node logs the request. */
  isLeftOut = false;
  /** Whether it is in the sample that has lines. */
  hasLine = false;
  /** The properties of `request.cf`, if a chosen field needs them. */
  cf: CfProperties | undefined;
  /** The span of the request; undefined without traces. */
  span: { traceId: string; spanId: string } | undefined;
  /** The status on an upgraded connection. */
  status = 0;
  originAddress: string | undefined;
  originStatus: number | undefined;
  originStartMs = 0;
  /** Milliseconds from sending the request to the origin until the head of its response. */
  originMs: number | undefined;
  /** The script that the request's route names. */
  scriptName: string | undefined;
  scriptStatus: string | undefined;
  scriptStartMs = 0;
  /** Milliseconds from the start of the script to the end of the response. */
  scriptMs: number | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    ray: string | undefined,
    startMs: number,
    needsConnection: boolean,
  ) {
    this.startMs = startMs;
    this.request = request;
    this.response = response;
    this.ray = ray;
    if (needsConnection) this.connection = connectionOf(request);
  }

  leaveOut(): void {
    this.isLeftOut = true;
  }

  asksOrigin(address: string | undefined): void {
    if (this.endMs > 0) return;
    this.originAddress = address;
    this.originStartMs = performance.now();
  }

  originAnswers(status: number): void {
    if (this.endMs > 0) return;
    this.originStatus = status;
    this.originMs = performance.now() - this.originStartMs;
  }

  runsScript(name: string): void {
    if (this.endMs > 0) return;
    this.scriptName = name;
    this.scriptStartMs = performance.now();
  }

  /** Records why the script has not answered. */
  scriptFails(status: string): void {
    if (this.endMs > 0) return;
    this.scriptStatus = status;
  }

  /** Called once the response has closed. The script may still be running then. */
  end(endMs: number): void {
    this.endMs = endMs;
    // A closed socket forgets its address.
    if (this.view === undefined) this.peerAddress = this.request.socket.remoteAddress;
    if (this.scriptName === undefined) return;
    this.scriptMs = this.endMs - this.scriptStartMs;
    this.scriptStatus ??= this.response?.writableFinished === false ? "canceled" : "ok";
  }
}
