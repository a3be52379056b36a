import { WorkerEntrypoint, withEnv } from "cloudflare:workers";
// Not in run.ts, which snippets have, too: they have no WebSockets.
import "../../../sandbox/limits/worker/collect-messages.ts";
import { noteWork } from "../../../sandbox/worker/concurrency.ts";
import {
  currentRun,
  forRun,
  noteNearObjects,
  passOn,
  metadataOf,
  reportThrown,
} from "../../../sandbox/worker/run.ts";
import type { RunMetadata } from "../../../sandbox/protocol.ts";
import { traced, type Waiting } from "../../tail/worker/console.ts";
import { carry } from "./carry.ts";
import { handleEvent } from "./events.ts";
import "./globals.ts";

// Saved before the script's code runs, because a script may replace them.
const { defineProperties, freeze } = Object;
const { apply } = Reflect;

type Env = Record<string, unknown>;
type Method = (...args: unknown[]) => unknown;
export type Handlers = Record<string, Method | undefined>;
type Entrypoint = WorkerEntrypoint<Env, { run: string }>;
type EntrypointClass = new (ctx: ExecutionContext, env: Env) => Entrypoint;
type Context = ExecutionContext<{ run?: string }>;
interface EntrypointObject {
  fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response>;
}

/** The entrypoint around a script's export: an object of handlers, or a class. */
export function entryOf(main: unknown): EntrypointClass | EntrypointObject {
  if (typeof main === "function") return classOf(main);
  const handlers = (main ?? {}) as Handlers;
  const entry: EntrypointObject = {
    fetch(request, env, ctx) {
      const metadata = metadataOf(request);
      if (metadata.calls !== undefined) noteNearObjects();
      return forRun(metadata.selvedgeRun, () =>
        handle(handlers, metadata, request, env, new HandlerContext(ctx)),
      );
    },
  };
  return freeze(entry); // a script may import the module that exports it
}

/** Methods run within the run of their request. */
function classOf(exported: unknown): EntrypointClass {
  const Base = exported as EntrypointClass;
  let runOf!: (entry: Entry) => string;
  class Entry extends Base {
    #run: string;

    constructor(ctx: ExecutionContext, env: Env) {
      const run = takeRun(ctx);
      super(ctx, env);
      this.#run = run;
    }

    override fetch(request: Request): Promise<Response> {
      const { ctx, env } = this;
      const metadata = metadataOf(request);
      this.#run = metadata.selvedgeRun;
      if (metadata.calls !== undefined) noteNearObjects();
      const own = Base.prototype as unknown as Handlers;
      const handlers = Object.fromEntries(
        handlerNames.flatMap((name) => {
          const method = own[name];
          return method === undefined ? [] : [[name, (...args: unknown[]) => method.apply(this, args)]];
        }),
      ) as Handlers;
      return forRun(this.#run, () => handle(handlers, metadata, request, env, ctx));
    }

    static {
      runOf = (entry) => entry.#run;
    }
  }
  let at = Base.prototype as object;
  while (at !== null && at !== WorkerEntrypoint.prototype && at !== Object.prototype) {
    for (const [key, { value, get, set }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (Object.hasOwn(Entry.prototype, key)) continue;
      if (get !== undefined)
        Object.defineProperty(Entry.prototype, key, {
          get(this: Entry) {
            return forRun(runOf(this), () => carry(get.call(this)));
          },
          ...(set === undefined ? {} : { set }),
          configurable: true,
        });
      if (typeof value !== "function") continue;
      const method = value as Method;
      Object.defineProperty(Entry.prototype, key, {
        value(this: Entry, ...args: unknown[]) {
          return forRun(runOf(this), () => carry(method.apply(this, args)));
        },
        // Constructors may bind their methods: this.x = this.x.bind(this).
        writable: true,
        configurable: true,
      });
    }
    at = Object.getPrototypeOf(at) as object;
  }
  // The name of the class in stacks and in the script's own code.
  Object.defineProperty(Entry.prototype, "constructor", { value: Base, writable: true, configurable: true });
  return Entry;
}

/** Contexts of handlers that called passThroughOnException. */
const passing = new WeakSet();

/** The `ctx` of handlers. A new object costs far less than changing the native one. */
class HandlerContext {
  readonly props = {};
  readonly #native: ExecutionContext;

  constructor(native: ExecutionContext) {
    this.#native = native;
  }

  waitUntil(promise: Promise<unknown>): void {
    this.#native.waitUntil(promise);
    noteWork(currentRun(), promise);
  }

  passThroughOnException(): void {
    passing.add(this);
  }
}

/** Returns the run that a class is created for, and hides it from the class in the native context. */
export function takeRun(ctx: object): string {
  const { run } = (ctx as Context).props;
  const { waitUntil } = ctx as Context;
  defineProperties(ctx, {
    waitUntil: {
      value: (promise: Promise<unknown>) => {
        apply(waitUntil, ctx, [promise]);
        noteWork(currentRun(), promise);
      },
      writable: true,
      configurable: true,
    },
    props: { value: {}, writable: true, configurable: true },
    // These would show the wrapper's entrypoints.
    exports: { value: undefined, writable: true, configurable: true },
    passThroughOnException: {
      value: () => {
        passing.add(ctx);
      },
      writable: true,
      configurable: true,
    },
  });
  return run ?? "";
}

const handlerNames = ["fetch", "scheduled", "queue", "tail"];

async function handle(
  handlers: Handlers,
  metadata: RunMetadata,
  request: Request,
  env: Env,
  ctx: object,
): Promise<Response> {
  try {
    return await handleWithMetadata(handlers, metadata, request, env, ctx);
  } catch (error) {
    await reportThrown(error);
    throw error;
  }
}

function handleWithMetadata(
  handlers: Handlers,
  metadata: RunMetadata,
  request: Request,
  env: Env,
  ctx: object,
): Promise<Response> {
  const { isTraced, event, params } = metadata;
  if (isTraced === true || isTraced === "early") {
    const untraced = { ...metadata, isTraced: false };
    const work = (): Promise<Response> => handleWithMetadata(handlers, untraced, request, env, ctx);
    return traced(ctx as Waiting, work, isTraced === "early");
  }
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
    // Without an origin behind the script its exception stands.
    return passOn(request).catch(() => {
      throw error;
    });
  }
}
