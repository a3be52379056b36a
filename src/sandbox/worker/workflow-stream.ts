import { thrownText } from "./thrown.ts";
import { batchLengthMax, frame, openCallsMax, readFrames, textLengthMax } from "./frames.ts";

/*
 * The system worker's side of a workflow stream: one WebSocket to the engine that multiplexes the messages of
 * many invocations. See frames.ts for the format.
 *
 *    to here:   R script run class start | B start | A answer (of a call) | S signal
 *    from here: C call | N note | E ending
 *
 * An invocation gets a function that can send messages for that invocation only. Its isolate may be hostile,
 * so its messages are checked here: invocations of other customers use the same stream.
 */
export interface WorkflowStreamHost {
  /**
   * Calls the script's entrypoint for invocations and keeps it loaded meanwhile. Resolves with the ending.
   */
  run(script: string, run: string, className: string, ask: InvocationPort, start: string): Promise<unknown>;
}

/**
 * Actions of an invocation: "call" and "note" send a message, "begun" waits for the start, "listen" sets the
 * function for signals.
 */
export type InvocationPort = (what: unknown, value?: unknown) => Promise<string> | undefined;

/** A function in a script's isolate; it stays alive until it is disposed. */
interface Listener {
  (signal: string): unknown;
  dup(): Listener;
  [Symbol.dispose](): void;
}

interface Frames {
  (kind: string, invocation: number, call: number, text: string): void;
}

/** An ending that fails the instance. */
const failure = (message: string): string =>
  JSON.stringify({ end: "throw", error: { name: "WorkflowInternalError", message }, unasked: [] });

class InvocationStream {
  /** Resolves with the ending of an invocation that violated the protocol. */
  readonly refused: Promise<string>;
  readonly #invocation: number;
  readonly #send: Frames;
  readonly #answers = new Map<number, (answer: string) => void>();
  readonly #begun = Promise.withResolvers<string>();
  #refuse!: (ending: string) => void;
  #signal: Listener | undefined;
  #early: string[] = [];
  #calls = 0;
  #isOver = false;

  constructor(invocation: number, send: Frames) {
    this.#invocation = invocation;
    this.#send = send;
    this.refused = new Promise((resolve) => (this.#refuse = resolve));
  }

  ask(what: unknown, value: unknown): Promise<string> | undefined {
    if (what === "begun") return this.#begun.promise;
    if (this.#isOver) throw new Error("The invocation is over");
    if (what === "listen") return this.#listen(value as Listener);
    const text = this.#checked(value);
    if (what === "note") {
      this.#send("N", this.#invocation, 0, text);
      return undefined;
    }
    if (this.#answers.size >= openCallsMax)
      throw this.#broken(`The workflow waits for more than ${openCallsMax} steps at once`);
    const call = ++this.#calls;
    this.#send("C", this.#invocation, call, text);
    return new Promise((resolve) => this.#answers.set(call, resolve));
  }

  /** Starts a standby invocation; an empty text ends it. */
  begin(start: string): void {
    this.#begun.resolve(start);
  }

  answer(call: number, text: string): void {
    this.#answers.get(call)?.(text);
    this.#answers.delete(call);
  }

  deliver(signal: string): void {
    if (signal === "abort") this.#begun.resolve("");
    if (this.#signal === undefined) this.#early.push(signal);
    else this.#give(this.#signal, signal).catch(() => {});
  }

  end(): void {
    this.#isOver = true;
    this.#begun.resolve("");
    // While this reference is held, the script's entrypoint stays alive.
    this.#signal?.[Symbol.dispose]();
    this.#signal = undefined;
    // Unanswered promises cause thousands of exceptions at once when they are garbage-collected.
    for (const give of this.#answers.values()) give("");
    this.#answers.clear();
  }

  /**
   * Delivers signals from now on. It keeps the invocation alive and costs a call, so short invocations do not
   * use it.
   */
  #listen(signal: Listener): undefined {
    if (typeof signal !== "function")
      throw this.#broken("The workflow passed a listener that is not a function");
    this.#signal?.[Symbol.dispose]();
    const kept = signal.dup();
    this.#signal = kept;
    for (const each of this.#early.splice(0)) this.#give(kept, each).catch(() => {});
  }

  async #give(signal: Listener, text: string): Promise<void> {
    try {
      await signal(text);
    } catch {
      // the invocation has ended
    }
  }

  #checked(value: unknown): string {
    if (typeof value !== "string") throw this.#broken("The workflow sent a message that is not a string");
    if (value.length > textLengthMax)
      throw this.#broken(`The workflow sent a message of more than ${textLengthMax / 2 ** 20} MiB`);
    return value;
  }

  /** Ends the invocation with an error. */
  #broken(why: string): Error {
    this.#isOver = true;
    this.#refuse(failure(why));
    return new TypeError(why);
  }
}

/** Opens a stream and returns the response to the engine's request. */
export function openWorkflowStream(host: WorkflowStreamHost): Response {
  const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
  const invocations = new Map<number, InvocationStream>();
  let outgoing = "";
  const flush = (): void => {
    if (outgoing === "") return;
    const message = outgoing;
    outgoing = "";
    try {
      server.send(message);
    } catch {
      // the engine is gone, and this process will end soon
    }
  };
  // Frames of one turn of the event loop go out as one message.
  const send: Frames = (kind, invocation, call, text) => {
    if (outgoing === "") queueMicrotask(flush);
    outgoing += frame(kind, invocation, call, text.toWellFormed());
    if (outgoing.length > batchLengthMax) flush();
  };
  const run = async (invocation: number, text: string): Promise<void> => {
    const end = text.indexOf("\n");
    const [script, token, className] = JSON.parse(text.slice(0, end)) as [string, string, string];
    const stream = new InvocationStream(invocation, send);
    invocations.set(invocation, stream);
    let ending: unknown;
    try {
      const ask: InvocationPort = (what, value) => stream.ask(what, value);
      ending = await Promise.race([
        host.run(script, token, className, ask, text.slice(end + 1)),
        stream.refused,
      ]);
    } catch (error) {
      ending = JSON.stringify({ end: "throw", error: thrownText(error), unasked: [] });
    }
    invocations.delete(invocation);
    stream.end();
    send("E", invocation, 0, checkedEnding(ending));
  };
  server.accept();
  server.addEventListener("message", ({ data }) => {
    readFrames(data as string, (kind, invocation, call, text) => {
      if (kind === "R") run(invocation, text).catch(() => {});
      else if (kind === "B") invocations.get(invocation)?.begin(text);
      else if (kind === "A") invocations.get(invocation)?.answer(call, text);
      else invocations.get(invocation)?.deliver(text);
    });
  });
  return new Response(null, { status: 101, webSocket: client });
}

function checkedEnding(ending: unknown): string {
  if (typeof ending !== "string") return failure("The workflow ended with a value that is not a string");
  return ending.length > textLengthMax
    ? failure(`The workflow ended with a string of more than ${textLengthMax / 2 ** 20} MiB`)
    : ending;
}
