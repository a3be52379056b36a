import type { IncomingMessage, ServerResponse } from "node:http";
import type { Pool } from "undici";
import { readUpTo } from "../../platform/util/read-up-to.ts";
import { protocolLimits } from "../settings.ts";
import { cellHeaders, type LocalCall } from "../protocol.ts";
import { refusalFlags, refusalText } from "../errors.ts";
import { headerText, MalformedError, readObject } from "./cell-messages.ts";
import type { RpcTunnels } from "./rpc-tunnels.ts";
import { ObjectCalls } from "./object-calls.ts";
import type { ObjectMessage } from "./object-messages.ts";
import { readReference } from "./object-reference.ts";
import type { RunHooks } from "./run-hooks.ts";

/** Most calls that a cell may report at once. */
const countMax = 100_000;

/** Answers the system worker's questions about calls of objects. */
export class ObjectQuestions {
  /** Method calls that a cell of objects expects. */
  readonly calls = new ObjectCalls();
  /** For a cell of objects: workerd failed to call a facet. */
  onFacetFault: () => void = () => {};
  /** For a cell of objects: takes a message of an object about itself. Resolves with the answer, if there is one. */
  onMessage: ((token: string, message: ObjectMessage) => Promise<string | undefined>) | undefined;
  /** Calls that stayed in the cell, as far as it has reported them. */
  localCalls = 0;
  onLocalCalls: (count: number) => void = () => {};
  readonly #tunnels: RpcTunnels | undefined;
  /** The slot of a cell of objects. */
  readonly #slot: number | undefined;
  readonly #runOf: (request: IncomingMessage) => Promise<RunHooks | undefined>;

  constructor(
    tunnels: RpcTunnels | undefined,
    slot: number | undefined,
    runOf: (request: IncomingMessage) => Promise<RunHooks | undefined>,
  ) {
    this.#tunnels = tunnels;
    this.#slot = slot;
    this.#runOf = runOf;
  }

  /** Takes an object's message about itself. */
  async take(token: unknown, message: ObjectMessage): Promise<string | undefined> {
    if (this.onMessage === undefined || typeof token !== "string")
      throw new MalformedError("Only a Durable Object has an alarm and bookmarks.");
    return this.onMessage(token, message);
  }

  /** Answers a request whose path begins with "/object". */
  async answer(url: URL, token: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const answer = await this.#answerTo(url, token, request);
      if (answer === undefined) throw new MalformedError("This call belongs to no request in progress.");
      if (answer === done) response.writeHead(204).end();
      else response.end(JSON.stringify(answer));
    } catch (error) {
      if (response.headersSent) return;
      response
        .writeHead(403)
        .end(JSON.stringify({ message: refusalText(error), flags: refusalFlags(error) }));
    }
  }

  async #answerTo(
    { pathname, searchParams }: URL,
    token: string,
    request: IncomingMessage,
  ): Promise<unknown> {
    switch (pathname) {
      case "/object-end":
        this.calls.end(token);
        return done;
      case "/object-facet-fault":
        this.onFacetFault();
        return done;
      case "/object-start":
        await this.take(token, { kind: "start" });
        return done;
      case "/object-fault":
        throw (await this.#tunnels?.faultOf(token)) ?? new MalformedError();
      case "/object-begin":
        return this.calls.take(token);
      default:
        return this.#ask(pathname, searchParams, request);
    }
  }

  /** Asks the run that calls. Undefined if there is none. */
  async #ask(path: string, asked: URLSearchParams, request: IncomingMessage): Promise<unknown> {
    const run = await this.#runOf(request);
    const binding = headerText("the binding", request.headers[cellHeaders.binding]);
    const object = await run?.object?.(binding, readReference(request.headers[cellHeaders.object]));
    if (path !== "/object-grant") return object?.route(this.#slot, asked.get("method") ?? "");
    const all = readCount(asked.get("all"));
    this.localCalls += all;
    this.onLocalCalls(all);
    const made = { ofRun: readCount(asked.get("made")), ofFamily: readCount(asked.get("family")) };
    return object && ((await object.grant(this.#slot, made)) ?? null);
  }
}

/** An answer without a body. */
const done = Symbol("done");

const readCount = (text: string | null): number =>
  Math.min(Math.max(0, Math.floor(Number(text ?? 0)) || 0), countMax);

/** Asks a cell for the call that has begun a run in it; undefined for another run. */
export async function askLocalCall(pool: Pool, token: string): Promise<LocalCall | undefined> {
  const { body } = await pool.request({ method: "GET", path: `/?run=${token}` });
  const text = (await readUpTo(body, protocolLimits.controlBytes)).toString();
  if (text === "null") return undefined;
  const { run, binding, reference } = readObject(text, "the call");
  if (typeof run === "string" && typeof binding === "string" && typeof reference === "string")
    return { run, binding, reference };
  throw new MalformedError("Expected text for the parts of the call.");
}

/** Whether a token is one that the system worker makes for a call in its cell. */
export const isLocalRun = (token: string): boolean => /^local\.\d{1,5}\.[0-9a-f-]{36}$/.test(token);
