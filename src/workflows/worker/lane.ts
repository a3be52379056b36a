import { RpcTarget } from "cloudflare:workers";

/*
 * The system worker's side of a lane: one WebSocket to the engine over which many segments run. A message is lines, a line is
 * fields with tabs between them; their contents are JSON, which has neither as it is.
 *
 *   to here:   R segment script run class start | B segment start | A segment call answer | S segment signal
 *   from here: C segment call message           | N segment message     | E segment ending
 */
export interface LaneHost {
  /** Calls the script's entrypoint for segments, and keeps it loaded meanwhile. */
  run(script: string, run: string, className: string, lane: RpcTarget, start: string): Promise<string>;
}

const begin = Symbol("begin");
const answer = Symbol("answer");
const tell = Symbol("tell");
const end = Symbol("end");

/** A function in a script's isolate, which lives there until it is disposed of. */
interface Listener {
  (signal: string): unknown;
  dup(): Listener;
  [Symbol.dispose](): void;
}

/** What a segment in a script's isolate holds of its lane: nothing that it sends can be another segment's. */
class SegmentLane extends RpcTarget {
  readonly #segment: string;
  readonly #send: (line: string) => void;
  readonly #answers = new Map<number, (answer: string) => void>();
  readonly #begun = Promise.withResolvers<string>();
  #signal: Listener | undefined;
  #early: string[] = [];
  #calls = 0;

  constructor(segment: string, send: (line: string) => void) {
    super();
    this.#segment = segment;
    this.#send = send;
  }

  call(message: unknown): Promise<string> {
    const call = ++this.#calls;
    this.#send(`C\t${this.#segment}\t${call}\t${line(message)}`);
    return new Promise((resolve) => this.#answers.set(call, resolve));
  }

  note(message: unknown): void {
    this.#send(`N\t${this.#segment}\t${line(message)}`);
  }

  /** For a segment that stands by: what it is to begin with; nothing when it never will. */
  begun(): Promise<string> {
    return this.#begun.promise;
  }

  /** Hears signals from now on. It holds the invocation, and costs a call: what is over at once does without. */
  listen(signal: Listener): void {
    this.#signal = signal.dup();
    for (const each of this.#early.splice(0)) void this.#signal(each);
  }

  // Not to be reached by a script: an RPC stub shows methods of the prototype, and these are symbols.
  [begin](start: string): void {
    this.#begun.resolve(start);
  }
  [answer](call: number, text: string): void {
    this.#answers.get(call)?.(text);
    this.#answers.delete(call);
  }
  [end](): void {
    // As long as it is held here, the whole invocation of the script is.
    this.#signal?.[Symbol.dispose]();
    this.#signal = undefined;
    // What is never answered is an exception each, thousands of them at once when they are collected.
    for (const give of this.#answers.values()) give("");
    this.#answers.clear();
  }
  [tell](signal: string): void {
    if (signal === "abort") this.#begun.resolve("");
    if (this.#signal === undefined) this.#early.push(signal);
    else void Promise.resolve(this.#signal(signal)).catch(() => {}); // it has ended meanwhile
  }
}

/** Opens a lane; the answer to the engine's request for it. */
export function openLane(host: LaneHost): Response {
  const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
  const segments = new Map<string, SegmentLane>();
  let outgoing = "";
  const flush = (): void => {
    server.send(outgoing);
    outgoing = "";
  };
  // What is said in one turn goes out as one message.
  const send = (text: string): void => {
    if (outgoing === "") queueMicrotask(flush);
    outgoing += outgoing === "" ? text : `\n${text}`;
  };
  const run = async (
    segment: string,
    script: string,
    token: string,
    className: string,
    start: string,
  ): Promise<void> => {
    const lane = new SegmentLane(segment, send);
    segments.set(segment, lane);
    let ending: string;
    try {
      ending = await host.run(script, token, className, lane, start);
    } catch (error) {
      const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
      ending = JSON.stringify({ end: "throw", error: { name, message, stack }, unasked: [] });
    }
    segments.delete(segment);
    lane[end]();
    send(`E\t${segment}\t${ending}`);
  };
  server.accept();
  server.addEventListener("message", ({ data }) => {
    for (const text of (data as string).split("\n")) {
      const [kind, segment, ...rest] = text.split("\t") as [string, string, ...string[]];
      if (kind === "R") void run(segment, ...(rest as [string, string, string, string]));
      else if (kind === "B") segments.get(segment)?.[begin](rest[0]!);
      else if (kind === "A") segments.get(segment)?.[answer](Number(rest[0]), rest[1]!);
      else segments.get(segment)?.[tell](rest[0]!);
    }
  });
  return new Response(null, { status: 101, webSocket: client });
}

function line(message: unknown): string {
  if (typeof message !== "string" || message.includes("\n") || message.includes("\t"))
    throw new TypeError("Expected one line of JSON");
  return message;
}
