import type { IncomingMessage, ServerResponse } from "node:http";
import type { WebSocket } from "ws";
import { readUpTo } from "../../platform/util/read-up-to.ts";
import { reasonPhrase } from "../../platform/util/reason-phrase.ts";
import { ChannelResponse, channelRequest, type Head } from "./channel-response.ts";
import { cellHeaders } from "../protocol.ts";
import { headerText, MalformedError, parseThrown, readObject, readThrown } from "./cell-messages.ts";
import { isAscii, openMessage, readFetch, readHead, type ChannelFetch } from "./channel-messages.ts";
import { encodeMetadata, thrownBytesMax, type CellRequest, type Sink, type Thrown } from "./exchange.ts";
import type { RunHooks } from "./run-hooks.ts";
import { refuse } from "./gateway-server.ts";
import { protocolLimits } from "../settings.ts";

interface Run {
  id: string;
  request: ChannelRequest;
  sink: Sink;
  hooks: RunHooks;
  /** Fetches in progress, and those whose bodies wait here. */
  fetches: { id: number; response: ChannelResponse }[];
  /** Number of messages of the snippet for this run. */
  messages: number;
  startedAt: number;
  resolve(thrown: Thrown | undefined): void;
  reject(error: Error): void;
}

export interface ChannelRequest {
  method: string;
  url: string;
  headers: readonly string[];
  /** JSON. */
  cf: string;
}

/** The connection to a snippet's isolate broke. */
export class ChannelError extends Error {}

const answerTimeoutMs = 30_000;
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
/** Converts a request for a channel. Returns undefined if only HTTP can carry it exactly, as with a body. */
export function channelRequestOf({
  method,
  path,
  headers,
  body,
  cf = "{}",
}: CellRequest): ChannelRequest | undefined {
  if (body !== null || !methods.has(method)) return undefined;
  const shown: string[] = [];
  let [host, scheme] = ["", "http"];
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i]!, headers[i + 1]!];
    if (name === cellHeaders.proto) scheme = value;
    else {
      if (name === "host") host = value;
      if (!isAscii(value)) return undefined;
      shown.push(name, value);
    }
  }
  const url = `${scheme}://${host}${path}`;
  // The snippet's end parses the URL, which must not change it.
  return URL.parse(url)?.href === url ? { method, url, headers: shown, cf } : undefined;
}

/**
 * The gateway's end of a snippet's channel: a multiplexed stream (one WebSocket into the snippet's isolate)
 * for all requests of the snippet. Requests and heads of fetched responses go in; fetches, answers and
 * exceptions come out. Most bodies go over HTTP instead. See worker/channel.ts for the other end.
 */
export class SnippetChannel {
  readonly #socket: WebSocket;
  readonly #onActivity: () => void;
  /**
   * Runs in progress; the first number of a run's id is its index here. Not a Map: an outgrown table of a Map
   * keeps pointing to its old entries, and garbage that keeps younger garbage alive made half the gateway's
   * CPU time garbage collection.
   */
  readonly #runs: (Run | undefined)[] = [];
  readonly #free: number[] = [];
  #generation = 0;
  #outgoing: string[] = [];
  readonly #timer: NodeJS.Timeout;
  #error: Error | undefined;
  lastUsedAt = performance.now();

  private constructor(socket: WebSocket, onActivity: () => void) {
    this.#socket = socket;
    this.#onActivity = onActivity;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      onActivity();
      this.#receive(data, isBinary);
    });
    socket.on("error", (error) => {
      this.#error = error;
      socket.terminate();
    });
    socket.on("close", () => this.#closed());
    this.#timer = setInterval(() => this.#endSilent(), answerTimeoutMs / 10);
    this.#timer.unref();
  }

  /**
   * Opens a channel to a script, which loads the script if necessary. Resolves with the exception if loading
   * threw one.
   */
  static async open(
    socketPath: string,
    scriptId: string,
    token: string,
    secret: string,
    onActivity: () => void,
  ): Promise<SnippetChannel | Thrown> {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(`ws+unix:${socketPath}:/`, {
      headers: { [cellHeaders.metadata]: encodeMetadata({ selvedgeRun: token, script: scriptId }) },
      perMessageDeflate: false,
      skipUTF8Validation: true,
      maxPayload: protocolLimits.channelMessageBytes,
      // Answers to pings would fill this process's memory if the snippet sent pings and read no pongs.
      autoPong: false,
    });
    return new Promise((resolve, reject) => {
      socket.once("open", () => {
        socket.off("error", reject);
        resolve(new SnippetChannel(socket, onActivity));
      });
      socket.once("error", reject);
      socket.once("unexpected-response", (_request, answer: IncomingMessage) => {
        if (answer.headers[cellHeaders.outcome] === secret) resolve(thrownIn(answer));
        else {
          reject(new Error(`the channel was answered with ${answer.statusCode}`));
          answer.socket.destroy();
        }
      });
    });
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  get isIdle(): boolean {
    return this.#free.length === this.#runs.length;
  }

  onClose(listener: () => void): void {
    this.#socket.once("close", listener);
  }

  close(): void {
    this.#socket.terminate();
  }

  /** Runs the script for one request. Resolves with its exception, if any; rejects when the channel breaks. */
  run(request: ChannelRequest, sink: Sink, hooks: RunHooks): Promise<Thrown | undefined> {
    const { method, url, headers, cf } = request;
    const slot = this.#free.pop() ?? this.#runs.length;
    const id = `${slot}.${++this.#generation}`;
    this.lastUsedAt = performance.now();
    return new Promise<Thrown | undefined>((resolve, reject) => {
      const leave = (): void => resolve(undefined);
      sink.response.once("close", leave);
      const stay = (): void => {
        sink.response.off("close", leave);
      };
      this.#runs[slot] = {
        id,
        request,
        sink,
        hooks,
        fetches: [],
        messages: 0,
        startedAt: this.lastUsedAt,
        resolve: (thrown) => {
          stay();
          resolve(thrown);
        },
        reject: (error) => {
          stay();
          reject(error);
        },
      };
      this.#send(
        `{"type":"run","run":"${id}","method":"${method}","url":${JSON.stringify(url)},"headers":${JSON.stringify(headers)},"cf":${cf}}`,
      );
    }).finally(() => {
      for (const { response } of this.#runs[slot]!.fetches) response.destroy();
      this.#runs[slot] = undefined;
      this.#free.push(slot);
    });
  }

  /** Handles what the snippet sends over HTTP: fetches that a channel cannot carry, and bodies. */
  get hooks(): RunHooks {
    return {
      fetch: (url, request, response) => {
        const run = this.#find(runOf(request));
        if (run === undefined) refuse(response, "This fetch belongs to no request in progress.");
        else run.hooks.fetch(url, request, response);
      },
      native: (what, request, response) => {
        const run = this.#find(runOf(request));
        const [kind, rest = ""] = what.split(" ");
        if (run === undefined) refuse(response, "This body belongs to no request in progress.");
        else if (kind === "body") sendBody(run, Number(rest), response);
        else {
          const head = readHead(readObject(headerText("the answer", rest), "the answer"));
          this.#stream(run, head, request, response);
        }
      },
    };
  }

  #find(id: string): Run | undefined {
    const run = this.#runs[Number.parseInt(id, 10)];
    return run?.id === id ? run : undefined;
  }

  /** Sends all messages of one turn of the event loop as one. */
  #send(message: string): void {
    if (this.#outgoing.push(message) > 1) return;
    setImmediate(() => {
      this.#socket.send(`[${this.#outgoing.join(",")}]`);
      this.#outgoing = [];
      if (this.#socket.bufferedAmount > protocolLimits.channelUnsentBytes)
        this.#break(new MalformedError("The snippet does not read its messages."));
    });
  }

  /** A snippet may have taken over the other end. Malformed messages must harm only the snippet itself. */
  #receive(data: Buffer, isBinary: boolean): void {
    let run: Run | undefined;
    try {
      const { message, body } = openMessage(data, isBinary);
      run = this.#find(String(message["run"]));
      if (run === undefined) return; // the visitor has left
      if (++run.messages > protocolLimits.channelMessagesPerRun)
        throw new MalformedError(
          `The snippet made more than ${protocolLimits.channelMessagesPerRun} fetches for one request.`,
        );
      if (message["type"] === "fetch") this.#fetch(run, readFetch(message));
      else if (message["type"] === "answer") this.#answer(run, readHead(message), message["from"], body);
      else run.resolve(readThrown(message));
    } catch (error) {
      if (run === undefined) this.#break(error as Error);
      else run.resolve(thrownBy(error));
    }
  }

  #break(error: Error): void {
    this.#error = error;
    this.#socket.terminate();
  }

  #fetch(run: Run, { id, method, url, headers }: ChannelFetch): void {
    if (run.fetches.some((each) => each.id === id)) throw new MalformedError("Two fetches have the same id.");
    const parsed = URL.parse(url);
    if (parsed === null) {
      this.#send(JSON.stringify({ type: "refused", id, message: "The URL cannot be fetched." }));
      return;
    }
    const response = new ChannelResponse((head) => this.#sendHead(run, id, method, head, response));
    run.fetches.push({ id, response });
    run.hooks.fetch(parsed, channelRequest(method, url, headers), response.asServerResponse());
  }

  #sendHead(run: Run, id: number, method: string, head: Head, response: ChannelResponse): void {
    const { status, statusText, headers } = head;
    const refusal = valueOf(headers, cellHeaders.error);
    if (refusal !== undefined) {
      take(run, id);
      response.destroy();
      const message = headerText("the refusal", refusal);
      this.#send(JSON.stringify({ type: "refused", id, message }));
      return;
    }
    const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
    const isNative = hasBody && !headers.every(isAscii);
    this.#send(JSON.stringify({ type: "head", id, status, statusText, headers, hasBody, isNative }));
  }

  #answer(run: Run, { status, statusText, headers }: Head, from: unknown, body: Buffer | undefined): void {
    const { response } = run.sink;
    const fetched = from === undefined ? undefined : takeBody(run, from);
    const isHead = run.request.method === "HEAD";
    const length =
      fetched === undefined ? body && String(body.length) : valueOf(fetched.head.headers, "content-length");
    const sent = isHead ? headers : withLength(headers, length);
    try {
      begin(run, { status, statusText, headers: sent });
    } catch (error) {
      fetched?.response.destroy();
      throw error;
    }
    if (fetched === undefined) response.end(isHead ? undefined : body);
    else fetched.response.sendTo(response);
    run.resolve(undefined);
  }

  #stream(
    run: Run,
    { status, statusText, headers }: Head,
    request: IncomingMessage,
    done: ServerResponse,
  ): void {
    const { response } = run.sink;
    begin(run, { status, statusText, headers: withLength(headers, request.headers["content-length"]) });
    request.on("data", (chunk: Buffer) => {
      this.#onActivity();
      if (!response.write(chunk)) request.pause();
    });
    response.on("drain", () => request.resume());
    response.once("close", () => request.destroy());
    request.once("end", () => {
      response.end();
      done.writeHead(204).end();
      run.resolve(undefined);
    });
    request.once("close", () => {
      if (!request.readableEnded) response.destroy();
    });
  }

  /**
   * Ends runs without an answer for 30 seconds whose fetches have all been answered: workerd cannot notice
   * such a hang.
   */
  #endSilent(): void {
    const before = performance.now() - answerTimeoutMs;
    for (const run of this.#runs) {
      if (run === undefined || run.startedAt > before || run.sink.response.headersSent) continue;
      if (run.fetches.every(({ response }) => response.head !== undefined)) run.resolve(silence);
    }
  }

  #closed(): void {
    clearInterval(this.#timer);
    const error = new ChannelError("the snippet's isolate closed the channel", { cause: this.#error });
    for (const run of this.#runs) {
      if (run === undefined) continue;
      run.reject(error);
      if (run.sink.response.headersSent) run.sink.response.destroy();
    }
  }
}

async function thrownIn(answer: IncomingMessage): Promise<Thrown> {
  const { socket } = answer; // the property is empty once the answer has been read
  const thrown = parseThrown(await readUpTo(answer, thrownBytesMax));
  socket.destroy();
  return thrown;
}

const silence: Thrown = {
  name: "Error",
  message: `the snippet did not answer in ${answerTimeoutMs / 1000} seconds`,
  stack: undefined,
};

/** The header holds the channel's token and, after a space, the id of the run. */
const runOf = (request: IncomingMessage): string =>
  String(request.headers[cellHeaders.run]).split(" ")[1] ?? "";

/** The exception of a run that failed on this side. Only a malformed message is the snippet's own fault. */
const thrownBy = (error: unknown): Thrown => ({
  name: "Error",
  message: error instanceof MalformedError ? error.message : "The snippet's response cannot be sent.",
  stack: undefined,
});

function take(run: Run, id: unknown): ChannelResponse | undefined {
  const index = run.fetches.findIndex((each) => each.id === id);
  return index < 0 ? undefined : run.fetches.splice(index, 1)[0]!.response;
}

/** Takes a fetched response out of the run, so that it lives as long as it is read. Throws the second time. */
function takeBody(run: Run, id: unknown): { response: ChannelResponse; head: Head } {
  const response = take(run, id);
  if (response?.head !== undefined) return { response, head: response.head };
  response?.destroy();
  throw new MalformedError("This body has been read.");
}

function sendBody(run: Run, id: number, response: ServerResponse): void {
  const fetched = takeBody(run, id);
  try {
    const { status, statusText, headers } = fetched.head;
    response.writeHead(status, reasonPhrase(status, statusText), headers);
  } catch (error) {
    fetched.response.destroy();
    throw error;
  }
  fetched.response.sendTo(response);
}

function begin({ sink }: Run, { status, statusText, headers }: Head): void {
  sink.response.writeHead(status, reasonPhrase(status, statusText), sink.headers(headers, status));
}

function valueOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : headers[at + 1];
}

/** Replaces the content-length that the script set by the real length. */
function withLength(headers: readonly string[], length: string | undefined): string[] {
  const others: string[] = [];
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]!.toLowerCase() !== "content-length") others.push(headers[i]!, headers[i + 1]!);
  return length === undefined ? others : [...others, "content-length", length];
}
