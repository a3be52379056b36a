import type { IncomingMessage, ServerResponse } from "node:http";
import type { WebSocket } from "ws";
import { ChannelResponse, channelRequest, type Head } from "./channel-response.ts";
import { internal } from "./cell-folder.ts";
import { encodeSaid, parseThrown, type CellRequest, type Sink, type Thrown } from "./exchange.ts";
import { refuse, type RunHooks } from "./front-server.ts";

/** What a snippet says over its channel: it fetches, it answers, it threw. */
type Said =
  | { type: "fetch"; run: string; id: number; method: string; url: string; headers: string[] }
  | ({ type: "answer"; run: string; from?: number } & Head)
  | ({ type: "threw"; run: string } & Thrown);

interface Run {
  id: string;
  request: ChannelRequest;
  sink: Sink;
  hooks: RunHooks;
  /** Fetches that are under way, or whose bodies wait here. */
  fetches: { id: number; response: ChannelResponse }[];
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

/** The connection to a snippet's isolate is gone. */
export class ChannelError extends Error {}

const answerTimeoutMs = 30_000;
const messageBytesMax = 1024 * 1024;
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const isAscii = (text: string): boolean => /^[\t\x20-\x7e]*$/.test(text);

/** What a channel can carry of a request: all of it, or undefined where only HTTP says it exactly. */
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
    if (name === internal.proto) scheme = value;
    else {
      if (name === "host") host = value;
      if (!isAscii(value)) return undefined;
      shown.push(name, value);
    }
  }
  const url = `${scheme}://${host}${path}`;
  // The snippet's end parses it, which must not change it.
  return URL.parse(url)?.href === url ? { method, url, headers: shown, cf } : undefined;
}

/**
 * The front's end of a snippet's channel: one WebSocket into its isolate, over which all of its requests go. See
 * worker/channel.ts.
 */
export class Channel {
  readonly #socket: WebSocket;
  readonly #onActivity: () => void;
  /**
   * Requests in the script, by the first number of their ids. Not a Map: what a Map outgrows keeps pointing to what it
   * held, and old garbage that keeps young garbage alive made half the front's CPU time collection.
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
      this.#hear(data, isBinary);
    });
    socket.on("error", (error) => (this.#error = error));
    socket.on("close", () => this.#closed());
    this.#timer = setInterval(() => this.#endSilent(), answerTimeoutMs / 10);
    this.#timer.unref();
  }

  /** Opens a channel to a script; loads it where that has not been done. Resolves with what it threw, if it did. */
  static async open(
    socketPath: string,
    scriptId: string,
    token: string,
    secret: string,
    onActivity: () => void,
  ): Promise<Channel | Thrown> {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(`ws+unix:${socketPath}:/`, {
      headers: { [internal.said]: encodeSaid({ selvedgeRun: token, script: scriptId }) },
      perMessageDeflate: false,
      skipUTF8Validation: true,
      maxPayload: messageBytesMax,
    });
    return new Promise((resolve, reject) => {
      socket.once("open", () => {
        socket.off("error", reject);
        resolve(new Channel(socket, onActivity));
      });
      socket.once("error", reject);
      socket.once("unexpected-response", (_request, answer: IncomingMessage) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.once("error", reject);
        answer.once("end", () => {
          if (answer.headers[internal.outcome] === secret) resolve(parseThrown(Buffer.concat(chunks)));
          else reject(new Error(`the channel was answered with ${answer.statusCode}`));
          socket.terminate();
        });
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

  /** Runs the script for one request. Resolves with what it threw, if it did; rejects when the channel breaks. */
  run(request: ChannelRequest, sink: Sink, hooks: RunHooks): Promise<Thrown | undefined> {
    const { method, url, headers, cf } = request;
    const slot = this.#free.pop() ?? this.#runs.length;
    const id = `${slot}.${++this.#generation}`;
    this.lastUsedAt = performance.now();
    return new Promise<Thrown | undefined>((resolve, reject) => {
      const leave = (): void => resolve(undefined);
      sink.response.once("close", leave);
      const stay = (): void => void sink.response.off("close", leave);
      this.#runs[slot] = {
        id,
        request,
        sink,
        hooks,
        fetches: [],
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
      this.#say(
        `{"type":"run","run":"${id}","method":"${method}","url":${JSON.stringify(url)},"headers":${JSON.stringify(headers)},"cf":${cf}}`,
      );
    }).finally(() => {
      for (const { response } of this.#runs[slot]!.fetches) response.destroy();
      this.#runs[slot] = undefined;
      this.#free.push(slot);
    });
  }

  /** What the script does over HTTP: fetches that a channel cannot carry, and bodies. */
  get hooks(): RunHooks {
    return {
      fetch: (url, request, response) => {
        const run = this.#find(runOf(request));
        if (run === undefined) refuse(response, "This fetch belongs to no request that is being handled.");
        else run.hooks.fetch(url, request, response);
      },
      native: (what, request, response) => {
        const run = this.#find(runOf(request));
        const [kind, rest = ""] = what.split(" ");
        if (run === undefined) refuse(response, "This body belongs to no request that is being handled.");
        else if (kind === "body") sendBody(run, Number(rest), response);
        else this.#stream(run, JSON.parse(decodeURIComponent(rest)) as Head, request, response);
      },
    };
  }

  #find(id: string): Run | undefined {
    const run = this.#runs[Number.parseInt(id, 10)];
    return run?.id === id ? run : undefined;
  }

  /** All that is said in one turn goes as one message. */
  #say(message: string): void {
    if (this.#outgoing.push(message) > 1) return;
    setImmediate(() => {
      this.#socket.send(`[${this.#outgoing.join(",")}]`);
      this.#outgoing = [];
    });
  }

  /** A snippet may have got hold of the other end: what is said must not do more harm than to itself. */
  #hear(data: Buffer, isBinary: boolean): void {
    let run: Run | undefined;
    try {
      const length = isBinary ? data.readUInt32BE(0) : data.length;
      const start = isBinary ? 4 : 0;
      const said = JSON.parse(data.toString("utf8", start, start + length)) as Said;
      run = this.#find(said.run);
      if (run === undefined) return; // the visitor has left
      if (said.type === "fetch") this.#fetch(run, said);
      else if (said.type === "threw") run.resolve(said);
      else this.#answer(run, said, isBinary ? data.subarray(start + length) : undefined);
    } catch (error) {
      if (run === undefined) this.#socket.terminate();
      else run.resolve(error as Error as Thrown);
    }
  }

  #fetch(run: Run, { id, method, url, headers }: Said & { type: "fetch" }): void {
    const parsed = URL.parse(url);
    if (parsed === null) {
      this.#say(JSON.stringify({ type: "refused", id, message: "The URL cannot be fetched." }));
      return;
    }
    const response = new ChannelResponse((head) => this.#sayHead(run, id, method, head, response));
    run.fetches.push({ id, response });
    run.hooks.fetch(parsed, channelRequest(method, url, onWire(headers)), response.asServerResponse());
  }

  #sayHead(run: Run, id: number, method: string, head: Head, response: ChannelResponse): void {
    const { status, statusText, headers } = head;
    const refusal = valueOf(headers, internal.error);
    if (refusal !== undefined) {
      take(run, id);
      response.destroy();
      this.#say(JSON.stringify({ type: "refused", id, message: decodeURIComponent(refusal) }));
      return;
    }
    const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
    const isNative = hasBody && !headers.every(isAscii);
    this.#say(JSON.stringify({ type: "head", id, status, statusText, headers, hasBody, isNative }));
  }

  #answer(run: Run, said: Said & { type: "answer" }, body: Buffer | undefined): void {
    const { status, statusText, headers, from } = said;
    const { response } = run.sink;
    const fetched = from === undefined ? undefined : take(run, from);
    const isHead = run.request.method === "HEAD";
    const length =
      fetched === undefined ? body && String(body.length) : valueOf(fetched.head!.headers, "content-length");
    const sent = isHead ? headers : withLength(headers, length);
    begin(run, { status, statusText, headers: sent });
    if (fetched === undefined) response.end(isHead ? undefined : body);
    else fetched.sendTo(response);
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

  /** A handler that waits for what never comes would keep its visitor for ever. */
  #endSilent(): void {
    const before = performance.now() - answerTimeoutMs;
    for (const run of this.#runs) {
      if (run === undefined || run.startedAt > before || run.sink.response.headersSent) continue;
      if (run.fetches.every(({ response }) => response.head !== undefined)) run.resolve(silence);
    }
  }

  #closed(): void {
    clearInterval(this.#timer);
    const error = new ChannelError("the snippet's isolate broke off", { cause: this.#error });
    for (const run of this.#runs) {
      if (run === undefined) continue;
      run.reject(error);
      if (run.sink.response.headersSent) run.sink.response.destroy();
    }
  }
}

const silence: Thrown = {
  name: "Error",
  message: `the snippet did not answer in ${answerTimeoutMs / 1000} seconds`,
  stack: undefined,
};

/** The second part of what the script's end calls a run; the first is its channel. */
const runOf = (request: IncomingMessage): string => String(request.headers[internal.run]).split(" ")[1] ?? "";

function take(run: Run, id: number): ChannelResponse | undefined {
  const index = run.fetches.findIndex((each) => each.id === id);
  return index < 0 ? undefined : run.fetches.splice(index, 1)[0]!.response;
}

function sendBody(run: Run, id: number, response: ServerResponse): void {
  const fetched = take(run, id); // from now on it lives as long as the script reads it
  if (fetched?.head === undefined) {
    refuse(response, "This body has been read.");
    return;
  }
  const { status, statusText, headers } = fetched.head;
  response.writeHead(status, statusText, headers);
  fetched.sendTo(response);
}

function begin({ sink }: Run, { status, statusText, headers }: Head): void {
  sink.response.writeHead(status, statusText, sink.headers(onWire(headers), status));
}

/** Headers are bytes for Node, one in each character; what a snippet sets is text, sent as UTF-8. */
const onWire = (headers: string[]): string[] =>
  headers.every(isAscii) ? headers : headers.map((each) => Buffer.from(each).toString("latin1"));

function valueOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : headers[at + 1];
}

/** Whatever the script says of a body's length, it has the one that it has. */
function withLength(headers: readonly string[], length: string | undefined): string[] {
  const others: string[] = [];
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]!.toLowerCase() !== "content-length") others.push(headers[i]!, headers[i + 1]!);
  return length === undefined ? others : [...others, "content-length", length];
}
