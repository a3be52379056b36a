import { AsyncLocalStorage } from "node:async_hooks";
import { env, WorkerEntrypoint } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";
import { forRun } from "../../cells/worker/run.ts";
import { traced } from "../../tail/worker/console.ts";
import type { Ending, StartMessage } from "./messages.ts";
import { runSegment, Segment, type Workflow } from "./run.ts";

/* Runs a script's workflows, in its own isolate. The natives are taken before its code can replace them. */
const { setTimeout, clearTimeout } = globalThis;
const { parse, stringify } = JSON;
const now = Date.now.bind(Date);
const steps = new AsyncLocalStorage<true>();

interface LaneStub {
  begun(): Promise<string>;
  call(message: string): Promise<string>;
  note(message: string): Promise<void>;
  listen(signal: (signal: "hold" | "release" | "abort") => void): Promise<void>;
}
type WorkflowClass = new (ctx: object, env: object) => Workflow;
type EntrypointClass = new (ctx: ExecutionContext, env: object) => WorkerEntrypoint<object, { run: string }>;

const host = {
  after(ms: number, run: () => void): () => void {
    // A timer cannot be set for longer; nothing that takes so long is waited for here.
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
  now,
  isInsideStep: () => steps.getStore() === true,
  insideStep: <T>(run: () => T): T => steps.run(true, run) as T,
  isNonRetryable: (error: unknown) =>
    error instanceof NonRetryableError || (error instanceof Error && error.name === "NonRetryableError"),
};

/** The entrypoint over which the system worker runs segments of the workflows that a script exports. */
export function segmentsOf(user: Record<string, unknown>): EntrypointClass {
  return class Segments extends WorkerEntrypoint<object, { run: string }> {
    /** One that stands by is given nothing to start with. */
    run(className: string, lane: LaneStub, given: string): Promise<string> {
      const { ctx } = this;
      return forRun(ctx.props.run, async () => {
        const text = given || (await lane.begun());
        if (text === "") return stringify({ end: "held" } satisfies Ending);
        const start = parse(text) as StartMessage;
        const exported = user[className];
        if (
          typeof exported !== "function" ||
          typeof (exported.prototype as Partial<Workflow>)?.run !== "function"
        )
          throw new TypeError(`The script exports no class "${className}" with a method run()`);
        const run = async (): Promise<Ending> => {
          const segment = new Segment(lane, start, host);
          return runSegment(segment, start, new (exported as WorkflowClass)(ctx, env));
        };
        return stringify(await (start.isTraced ? traced(ctx, run) : run()));
      });
    }
  } as unknown as EntrypointClass;
}
