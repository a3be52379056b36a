import { env } from "cloudflare:workers";
import { countCall } from "../../../sandbox/worker/concurrency.ts";
import { currentRun, fetchService } from "../../../sandbox/worker/run.ts";
import { connect, remoteProperty, savedMethod, wildcard } from "./binding-object.ts";
import { carry } from "./carry.ts";
import type { BindingFetch } from "./env.ts";

const { apply } = Reflect;

/** The system worker's entrypoint. `path` leads from the other script's entrypoint to one of its properties. */
interface Stub {
  call(run: string, binding: string, path: readonly string[], args: unknown): unknown;
  read(run: string, binding: string, path: readonly string[]): Promise<unknown>;
}

/** A binding to another script of the account: its `fetch`, and the methods and properties of its entrypoint. */
export function service(_call: BindingFetch, { name }: { name: string }): object {
  const stub = (env as Record<string, unknown>)[name] as Stub;
  // Saved, because a script may add methods to prototypes, and would get this stub and tokens as arguments.
  const [call, read] = [savedMethod(stub, "call"), savedMethod(stub, "read")];
  const property = (path: readonly string[]): unknown =>
    remoteProperty(
      (key) => property([...path, key]),
      (args) => {
        const run = neededRun();
        return countCall(run, () => apply(call ?? stub.call, stub, [run, name, path, carry(args)]));
      },
      () => apply(read ?? stub.read, stub, [neededRun(), name, path]) as Promise<unknown>,
    );
  return {
    fetch: async (input: RequestInfo | URL, init?: RequestInit) => fetchService(name, input, init),
    connect,
    [wildcard]: (key: string) => property([key]),
  };
}

function neededRun(): string {
  const run = currentRun();
  if (run === undefined) throw new Error("Services can be called only while handling a request.");
  return run;
}
