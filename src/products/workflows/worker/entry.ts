import { AsyncLocalStorage } from "node:async_hooks";
import { env, WorkerEntrypoint } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";
import { forRun } from "../../../sandbox/worker/run.ts";
import { traced } from "../../../workers/tail/worker/console.ts";
import { endingText, type Ending, type StartMessage } from "./messages.ts";
import { runInvocation, Invocation, type EnginePort, type RunnableWorkflow } from "./run.ts";

/*
 * Runs a script's workflows in its own isolate. Natives are taken before the script's code can replace them.
 */
const { setTimeout, clearTimeout } = globalThis;
const { parse } = JSON;
const { freeze } = Object;
const now = Date.now.bind(Date);
const steps = new AsyncLocalStorage<true>();

/**
 * The invocation's connection to the engine, see workflow-stream.ts. A function, because scripts can add to
 * the prototypes of objects.
 */
type Ask = (what: "begun" | "call" | "note" | "listen", value?: unknown) => Promise<string>;
type WorkflowClass = new (ctx: object, env: object) => RunnableWorkflow;
type EntrypointClass = new (ctx: ExecutionContext, env: object) => WorkerEntrypoint<object>;

const host = {
  after(ms: number, run: () => void): () => void {
    // Timers have a maximum; no wait here is longer.
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
  now,
  isInsideStep: () => steps.getStore() === true,
  insideStep: <T>(run: () => T): T => steps.run(true, run) as T,
  isNonRetryable: (error: unknown) =>
    error instanceof NonRetryableError || (error instanceof Error && error.name === "NonRetryableError"),
};

/** The entrypoint through which the system worker runs invocations of a script's workflows. */
export function invocationsOf(user: Record<string, unknown>): EntrypointClass {
  class WorkflowInvocations extends WorkerEntrypoint<object> {
    /** A standby invocation gets no start message here. */
    run(token: string, className: string, ask: Ask, given: string): Promise<string> {
      const { ctx } = this;
      return forRun(token, async () => {
        const text = given || (await ask("begun"));
        if (text === "") return endingText({ end: "held" });
        const start = parse(text) as StartMessage;
        const exported = user[className];
        if (
          typeof exported !== "function" ||
          typeof (exported.prototype as Partial<RunnableWorkflow>)?.run !== "function"
        )
          throw new TypeError(`The script exports no class "${className}" with a method run()`);
        const port: EnginePort = {
          call: (message) => ask("call", message),
          note: (message) => ask("note", message),
          listen: (signal) => ask("listen", signal),
        };
        const run = async (): Promise<Ending> => {
          const invocation = new Invocation(port, start, host);
          return runInvocation(invocation, start, new (exported as WorkflowClass)(ctx, env));
        };
        return endingText(await (start.isTraced ? traced(ctx, run) : run()));
      });
    }
  }
  // Otherwise the script could replace the method through the exports of its entry module and receive the
  // function.
  freeze(WorkflowInvocations.prototype);
  freeze(WorkflowInvocations);
  return WorkflowInvocations as unknown as EntrypointClass;
}
