import { WorkerEntrypoint, withEnv } from "cloudflare:workers";
import { forRun } from "../../cells/worker/run.ts";
import { handleEvent } from "./events.ts";

type Env = Record<string, unknown>;
type Method = (...args: unknown[]) => unknown;
export type Handlers = Record<string, Method | undefined>;
type Entrypoint = WorkerEntrypoint<Env, { run: string }>;
type EntrypointClass = new (ctx: ExecutionContext, env: Env) => Entrypoint;
interface Running {
  ctx: ExecutionContext<{ run: string }>;
  env: Env;
}

/** The entrypoint around what a script exports: an object of handlers, or a class. */
export function entryOf(main: unknown): EntrypointClass {
  if (typeof main === "function") return classOf(main);
  const handlers = (main ?? {}) as Handlers;
  return class Entry extends WorkerEntrypoint<Env, { run: string }> {
    override fetch(request: Request): Promise<Response> {
      const { ctx, env } = this;
      return forRun(ctx.props.run, () => handle(handlers, request, env, contextOf(ctx)));
    }
  };
}

/** Its methods run for the request that they are called for. */
function classOf(exported: unknown): EntrypointClass {
  const Base = exported as EntrypointClass;
  class Entry extends Base {
    override fetch(request: Request): Promise<Response> {
      const { ctx, env } = this as unknown as Running;
      const own = Base.prototype as unknown as Handlers;
      const handlers = Object.fromEntries(
        handlerNames.flatMap((name) => {
          const method = own[name];
          return method === undefined ? [] : [[name, (...args: unknown[]) => method.apply(this, args)]];
        }),
      ) as Handlers;
      return forRun(ctx.props.run, () => handle(handlers, request, env, ctx));
    }
  }
  let at = Base.prototype as object;
  while (at !== null && at !== WorkerEntrypoint.prototype && at !== Object.prototype) {
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof value !== "function" || Object.hasOwn(Entry.prototype, key)) continue;
      const method = value as Method;
      Object.defineProperty(Entry.prototype, key, {
        value(this: Running, ...args: unknown[]) {
          return forRun(this.ctx.props.run, () => method.apply(this, args));
        },
      });
    }
    at = Object.getPrototypeOf(at) as object;
  }
  return Entry;
}

const handlerNames = ["fetch", "scheduled", "queue", "tail"];

async function handle(handlers: Handlers, request: Request, env: Env, ctx: object): Promise<Response> {
  const { headers } = request;
  const event = headers.get("x-selvedge-event");
  if (event !== null) return handleEvent(event, handlers, request, env, ctx);
  const params = headers.get("x-selvedge-params");
  if (params !== null) {
    const inner = new Request(request);
    inner.headers.delete("x-selvedge-params");
    const all = { ...env, ...(JSON.parse(decodeURIComponent(params)) as Env) };
    return withEnv(all, () => respond(handlers, inner, all, ctx)) as Promise<Response>;
  }
  return respond(handlers, request, env, ctx);
}

async function respond(handlers: Handlers, request: Request, env: Env, ctx: object): Promise<Response> {
  if (handlers["fetch"] === undefined) throw new Error("Handler does not export a fetch() function.");
  return (await handlers["fetch"](request, env, ctx)) as Response;
}

/** What a handler may do beyond its answer. The run's own props stay here. */
const contextOf = (ctx: ExecutionContext): object => ({
  waitUntil: (promise: Promise<unknown>) => ctx.waitUntil(promise),
  passThroughOnException: () => ctx.passThroughOnException(),
  props: {},
});
