import {
  type Agent,
  request as send,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { asciiJson } from "../util/ascii-json.ts";
import { randomText } from "../util/ids.ts";
import { answersOf, type CallAnswers, type CallHandler, type CallUpgradeHandler } from "./call-server.ts";
import { callHeader, FailedCall, failureHeader, headBytesMax, type CallHead } from "./call-messages.ts";
import { isBusyOrAbsent } from "../processes/protocol.ts";
import { unixTransport, type CallTransport } from "./transport.ts";

const againMs = 100;
const responseBytesMax = 16 * 1024 * 1024;

/** Response headers that belong to the connection between the processes. */
const ofConnection: ReadonlySet<string> = new Set(["connection", "keep-alive", "transfer-encoding"]);

/** A request that another process answers as if it had arrived there. */
export interface CallExchange {
  url: URL;
  request: IncomingMessage;
  response: ServerResponse;
}

/** A connection for another process, with the bytes that were read from it already. */
type JoinedCall = Pick<UpgradedCall, "socket" | "head"> & { url?: string; headers: readonly string[] };

/** The head of a call that is about no request. */
const noUrl = "http://process/";

/** An upgrade that another process takes over as if it had arrived there. */
export interface UpgradedCall {
  url: URL;
  request: IncomingMessage;
  socket: Socket;
  head: Buffer;
}

/**
 * Calls between the main process and its edge processes: HTTP over a Unix socket of each process. `to` is the
 * path of the other process's socket, by default the main process's. Between nodes, `to` is an address.
 */
export class ProcessCalls {
  /** The path of this process's socket. */
  readonly path: string;
  readonly #mainPath: string;
  /** For calls without a body. Others use connections of their own, because their reader may stop before the end. */
  readonly #agent: Agent;
  readonly #answers: CallAnswers;
  readonly #transport: CallTransport;

  constructor(path: string, mainPath: string, transport = unixTransport) {
    this.path = path;
    this.#mainPath = mainPath;
    this.#transport = transport;
    this.#agent = transport.newAgent();
    this.#answers = answersOf(transport);
  }

  /**
   * Sets the handler for calls with a name. If it rejects with a FailedCall, the caller gets its details; any
   * other rejection fails the call without details.
   */
  serve<Details>(
    name: string,
    answer: CallHandler<Details>,
    answerUpgrade?: CallUpgradeHandler<Details>,
  ): void {
    this.#answers.serve(name, answer, answerUpgrade);
  }

  async listen(onFault: (error: unknown, name: string) => void): Promise<void> {
    await this.#answers.listen(this.path, onFault);
  }

  close(): void {
    this.#answers.close();
    this.#agent.destroy();
  }

  /**
   * Lets another process answer a request. Rejects only while nothing has been sent to the client, with a
   * FailedCall if the other process refused.
   */
  async forward(
    name: string,
    details: unknown,
    exchange: CallExchange,
    to = this.#mainPath,
    signal?: AbortSignal,
  ): Promise<void> {
    signal?.throwIfAborted();
    const { url, request, response } = exchange;
    const { "content-length": length, "transfer-encoding": coding } = request.headers;
    const headers: string[] = [];
    if (coding !== undefined) headers.push("transfer-encoding", "chunked");
    else if (length !== undefined) headers.push("content-length", length);
    const hasBody = coding !== undefined || Number(length ?? 0) > 0;
    const head = { name, details, mark: newMark(), url: url.href, headers: request.rawHeaders };
    // Kept open, so that the other process can answer before it has read the whole body.
    const agent = hasBody ? this.#transport.newAgent() : this.#agent;
    const call = await this.#open(to, head, request.method ?? "GET", headers, agent);
    const leave = (): void => {
      call.destroy();
    };
    response.once("close", leave);
    signal?.addEventListener("abort", leave);
    if (response.destroyed || signal?.aborted === true) leave();
    try {
      const answered = answerTo(call);
      if (hasBody) request.once("error", leave).pipe(call);
      else call.end();
      const answer = await answered;
      throwIfFailed(answer, head);
      response.writeHead(answer.statusCode!, answer.statusMessage, forwardedHeaders(answer.rawHeaders));
      await pipeline(answer, response);
    } finally {
      response.off("close", leave);
      signal?.removeEventListener("abort", leave);
      if (hasBody) {
        request.unpipe(call);
        request.resume();
        call.destroy();
        agent.destroy();
      }
    }
  }

  /** Lets another process take over an upgrade. Rejects only if that process cannot be reached before `signal`. */
  async upgrade(
    name: string,
    details: unknown,
    call: UpgradedCall,
    to = this.#mainPath,
    signal?: AbortSignal,
  ): Promise<void> {
    const { url, request, socket, head } = call;
    await this.join(name, details, { url: url.href, headers: request.rawHeaders, socket, head }, to, signal);
  }

  /**
   * Connects a connection to one to another process. Rejects only if that process cannot be reached before `signal`; the
   * connection is then as it was.
   */
  async join(
    name: string,
    details: unknown,
    { url = noUrl, headers, socket, head }: JoinedCall,
    to = this.#mainPath,
    signal?: AbortSignal,
  ): Promise<void> {
    signal?.throwIfAborted();
    const described: CallHead = { name, details, mark: newMark(), url, headers };
    const other = await this.#whenThere(() => this.#transport.connect(to));
    if (socket.destroyed || signal?.aborted === true) {
      other.destroy(); // nothing else would end it later
      signal?.throwIfAborted();
      return;
    }
    const lines = ["GET / HTTP/1.1", "host: process", "connection: Upgrade", "upgrade: websocket"];
    other.write(`${[...lines, `${callHeader}: ${asciiJson(described)}`].join("\r\n")}\r\n\r\n`);
    if (head.length > 0) other.write(head);
    const leave = (): void => {
      other.destroy();
    };
    signal?.addEventListener("abort", leave);
    await new Promise<void>((resolve) => {
      other.on("error", () => socket.destroy());
      other.on("close", () => {
        signal?.removeEventListener("abort", leave);
        socket.destroySoon();
        resolve();
      });
      socket.on("close", () => other.destroySoon());
      other.pipe(socket);
      socket.pipe(other);
    });
  }

  /** Asks another process for JSON. Rejects with a FailedCall if it refused. */
  async ask<Answer>(
    name: string,
    details: unknown,
    to = this.#mainPath,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const answer = await this.fetch(name, details, to, signal);
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      if ((length += chunk.length) > responseBytesMax)
        throw new Error(`The answer to the call ${name} is too long`);
      chunks.push(chunk);
    }
    return JSON.parse(Buffer.concat(chunks).toString()) as Answer;
  }

  /** The response of another process, with its body unread. Rejects with a FailedCall if that process refused. */
  async fetch(
    name: string,
    details: unknown,
    to = this.#mainPath,
    signal?: AbortSignal,
  ): Promise<IncomingMessage> {
    signal?.throwIfAborted();
    const head = { name, details, mark: newMark(), url: noUrl, headers: [] };
    const call = await this.#open(to, head, "GET", [], this.#agent);
    const leave = (): void => {
      call.destroy();
    };
    signal?.addEventListener("abort", leave);
    call.once("close", () => signal?.removeEventListener("abort", leave));
    if (signal?.aborted === true) leave(); // while it was being connected
    const answered = answerTo(call);
    call.end();
    const answer = await answered;
    throwIfFailed(answer, head);
    return answer;
  }

  async #open(
    to: string,
    head: CallHead,
    method: string,
    headers: readonly string[],
    agent: Agent,
  ): Promise<ClientRequest> {
    const described = [...headers, "host", "process", callHeader, asciiJson(head)];
    const address = this.#transport.addressOf(to);
    const options = { ...address, agent, method, headers: described, maxHeaderSize: headBytesMax };
    return this.#whenThere(() => connected(send(options)));
  }

  /** Tries again while the process is not there, or has no room for one more connection. */
  async #whenThere<T>(open: () => Promise<T>): Promise<T> {
    const endMs = performance.now() + this.#transport.absentMsMax;
    for (;;) {
      try {
        return await open();
      } catch (error) {
        if (!isBusyOrAbsent(error) || performance.now() > endMs) throw error;
        await delay(againMs);
      }
    }
  }
}

/** Resolves when the request has a connection, before anything is sent. */
const connected = (call: ClientRequest): Promise<ClientRequest> =>
  new Promise((resolve, reject) => {
    call.once("error", reject);
    const ready = (): void => {
      call.off("error", reject).on("error", () => {}); // `answerTo` rejects
      resolve(call);
    };
    call.once("socket", (socket) => {
      if (socket.connecting) socket.once("connect", ready);
      else ready();
    });
  });

const answerTo = (call: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    call.once("response", resolve).once("error", reject);
    call.once("close", () => reject(new Error("The other process left before it answered")));
  });

const newMark = (): string => randomText(16, "base64url");

function throwIfFailed(answer: IncomingMessage, { mark }: CallHead): void {
  const failure = answer.headers[failureHeader];
  if (typeof failure !== "string" || !failure.startsWith(`${mark} `)) return;
  answer.resume();
  throw new FailedCall(JSON.parse(failure.slice(mark.length)));
}

function forwardedHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2)
    if (!ofConnection.has(raw[at]!.toLowerCase())) headers.push(raw[at]!, raw[at + 1]!);
  return headers;
}
