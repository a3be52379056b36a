import { WorkerEntrypoint } from "cloudflare:workers";
import { forRun } from "../../../sandbox/worker/run.ts";
import { carry } from "./carry.ts";
import { takeRun } from "./script.ts";

type Method = (this: unknown, ...args: unknown[]) => unknown;
type EntrypointClass = new (ctx: ExecutionContext, env: object) => WorkerEntrypoint;

const { apply, ownKeys } = Reflect;
const { defineProperty, entries, freeze, fromEntries, getPrototypeOf, prototype: anyObject } = Object;
const depthMax = 8;
/** Maximum number of parameters of an exported object's method: one argument, `env` and `ctx`. */
const parametersMax = 3;

/**
 * The exports that other scripts may call: the wrapped class, or the own properties of an object. As in
 * workerd, methods of an object receive one argument, then `env` and `ctx`.
 */
export function rpcOf(main: unknown, wrapped: unknown): unknown {
  return typeof main === "function" ? wrapped : objectClass((main ?? {}) as Record<string, unknown>);
}

/** A class, because only its instances know their run. */
function objectClass(handlers: Record<string, unknown>): EntrypointClass {
  let read!: (entry: Rpc, name: string) => unknown;
  class Rpc extends WorkerEntrypoint {
    #run: string;

    constructor(ctx: ExecutionContext, env: object) {
      const run = takeRun(ctx);
      super(ctx, env);
      this.#run = run;
    }

    static {
      read = (entry, name) => forRun(entry.#run, () => exposed(entry, entry.#run, handlers, name, 0));
    }
  }
  for (const name of ownKeys(handlers)) {
    if (typeof name !== "string" || name === "constructor") continue;
    defineProperty(Rpc.prototype, name, {
      get(this: Rpc) {
        return read(this, name);
      },
    });
  }
  freeze(Rpc.prototype); // a script may import the module that exports it
  return freeze(Rpc);
}

/** A property as other scripts see it. Objects inside an exported object are exported too. */
function exposed(
  entry: WorkerEntrypoint,
  run: string,
  owner: Record<string, unknown>,
  name: string,
  depth: number,
): unknown {
  const value = owner[name];
  if (typeof value === "function") return methodOf(entry, run, owner, name, value as Method);
  if (typeof value !== "object" || value === null || depth > depthMax) return value;
  if (getPrototypeOf(value) !== anyObject) return carry(value);
  return fromEntries(
    entries(value).map(([key]) => [
      key,
      exposed(entry, run, value as Record<string, unknown>, key, depth + 1),
    ]),
  );
}

function methodOf(entry: WorkerEntrypoint, run: string, owner: object, name: string, method: Method): Method {
  const { ctx, env } = entry as unknown as { ctx: object; env: object };
  return (...args) => {
    if (method.length > parametersMax)
      throw new TypeError(
        `"${name}" cannot be called by other scripts: a method of an exported object has at most the parameters (argument, env, ctx). Export a class that extends WorkerEntrypoint for more arguments.`,
      );
    if (args.length !== 1)
      throw new TypeError(
        `"${name}" takes exactly one argument but received ${args.length}: it is a method of an exported object. Export a class that extends WorkerEntrypoint for any other number of arguments.`,
      );
    return forRun(run, () => carry(apply(method, owner, [args[0], env, ctx])));
  };
}
