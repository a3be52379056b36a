import { WorkerEntrypoint, withEnv } from "cloudflare:workers";
import { forRun, passOn, saidWith } from "../../cells/worker/run.ts";
import type { Said } from "../../cells/worker/said.ts";
import { traced, type Waiting } from "../../tail/worker/console.ts";
import { carry } from "./carry.ts";
import { handleEvent } from "./events.ts";
import "./globals.ts";

type Env = Record<string, unknown>;
type Method = (...args: unknown[]) => unknown;
export type Handlers = Record<string, Method | undefined>;
type Entrypoint = WorkerEntrypoint<Env, { run: string }>;
type EntrypointClass = new (ctx: ExecutionContext, env: Env) => Entrypoint;
type Context = ExecutionContext<{ run?: string }>;
interface EntrypointObject {
  fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response>;
}

/** The entrypoint around what a script exports: an object of handlers, or a class. */
export function entryOf(main: unknown): EntrypointClass | EntrypointObject {
  if (typeof main === "function") return classOf(main);
  const handlers = (main ?? {}) as Handlers;
  return {
    fetch(request, env, ctx) {
      const said = saidWith(request);
      return forRun(said.selvedgeRun, () => handle(handlers, said, request, env, new HandlerContext(ctx)));
    },
  };
}

/** Its methods run for the request that they are called for. */
function classOf(exported: unknown): EntrypointClass {
  const Base = exported as EntrypointClass;
  class Entry extends Base {
    #run: string;

    constructor(ctx: ExecutionContext, env: Env) {
      const run = takeRun(ctx);
      super(ctx, env);
      this.#run = run;
    }

    override fetch(request: Request): Promise<Response> {
      const { ctx, env } = this;
      const said = saidWith(request);
      this.#run = said.selvedgeRun;
      const own = Base.prototype as unknown as Handlers;
      const handlers = Object.fromEntries(
        handlerNames.flatMap((name) => {
          const method = own[name];
          return method === undefined ? [] : [[name, (...args: unknown[]) => method.apply(this, args)]];
        }),
      ) as Handlers;
      return forRun(this.#run, () => handle(handlers, said, request, env, ctx));
    }

    static of(entry: Entry): string {
      return entry.#run;
    }
  }
  let at = Base.prototype as object;
  while (at !== null && at !== WorkerEntrypoint.prototype && at !== Object.prototype) {
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof value !== "function" || Object.hasOwn(Entry.prototype, key)) continue;
      const method = value as Method;
      Object.defineProperty(Entry.prototype, key, {
        value(this: Entry, ...args: unknown[]) {
          return forRun(Entry.of(this), () => carry(method.apply(this, args)));
        },
      });
    }
    at = Object.getPrototypeOf(at) as object;
  }
  return Entry;
}

/** Contexts whose script has asked for its request to go on to the origin, should it throw. */
const passing = new WeakSet();

/** What a handler may do beyond its answer. The run stays the wrapper's. Cheaper by far than to change the native one. */
class HandlerContext {
  readonly props = {};
  readonly #native: ExecutionContext;

  constructor(native: ExecutionContext) {
    this.#native = native;
  }

  waitUntil(promise: Promise<unknown>): void {
    this.#native.waitUntil(promise);
  }

  passThroughOnException(): void {
    passing.add(this);
  }
}

/** The run that a class is made for. Its context is the native one, which shows the class no run. */
function takeRun(ctx: object): string {
  const { run } = (ctx as Context).props;
  Object.defineProperties(ctx, {
    props: { value: {}, writable: true, configurable: true },
    // They would name the wrapper's entrypoints.
    exports: { value: undefined, writable: true, configurable: true },
    passThroughOnException: { value: () => void passing.add(ctx), writable: true, configurable: true },
  });
  return run ?? "";
}

const handlerNames = ["fetch", "scheduled", "queue", "tail"];

async function handle(
  handlers: Handlers,
  said: Said,
  request: Request,
  env: Env,
  ctx: object,
): Promise<Response> {
  const { isTraced, event, params } = said;
  if (isTraced === true)
    return traced(ctx as Waiting, () => handle(handlers, { ...said, isTraced: false }, request, env, ctx));
  if (event !== undefined) return handleEvent(event, handlers, request, env, ctx);
  if (params === undefined) return respond(handlers, request, env, ctx);
  const all = { ...env, ...params };
  return withEnv(all, () => respond(handlers, request, all, ctx)) as Promise<Response>;
}

async function respond(handlers: Handlers, request: Request, env: Env, ctx: object): Promise<Response> {
  if (handlers["fetch"] === undefined) throw new Error("Handler does not export a fetch() function.");
  try {
    return (await handlers["fetch"](request, env, ctx)) as Response;
  } catch (error) {
    if (!passing.has(ctx) || request.bodyUsed) throw error;
    // Where there is no origin behind the script, what it threw stands.
    return passOn(request).catch(() => {
      throw error;
    });
  }
}
