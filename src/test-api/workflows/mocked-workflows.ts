import { z } from "zod";
import type { InvocationHooks, TestedInvocation } from "../../products/workflows/cells/tested-invocations.ts";
import { encode } from "../../products/workflows/worker/codec.ts";
import type { StepMocks } from "../../products/workflows/worker/messages.ts";

/** A step by its name. `index` selects one of several steps with this name, from 1. */
export const StepSchema = z.strictObject({
  name: z.string().min(1).max(256),
  index: z.int().min(1).max(1_000_000).default(1),
});
type StepInput = z.output<typeof StepSchema>;

const steps = z.array(StepSchema).max(1000).optional();
const times = z.int().min(1).max(1_000_000).optional();

/** A mock for all instances of a workflow, or for one. */
export const ModificationSchema = z.discriminatedUnion("do", [
  z.strictObject({ do: z.literal("disableSleeps"), steps }),
  z.strictObject({ do: z.literal("disableRetryDelays"), steps }),
  z.strictObject({ do: z.literal("mockStepResult"), step: StepSchema, result: z.unknown() }),
  z.strictObject({
    do: z.literal("mockStepError"),
    step: StepSchema,
    error: z.strictObject({ name: z.string().max(256), message: z.string().max(8192) }),
    times,
  }),
  z.strictObject({ do: z.literal("forceStepTimeout"), step: StepSchema, times }),
  z.strictObject({ do: z.literal("forceEventTimeout"), step: StepSchema }),
  z.strictObject({ do: z.literal("mockEvent"), type: z.string().max(100), payload: z.unknown() }),
]);
export type Modification = z.output<typeof ModificationSchema>;

/** The mocks of one workflow or one instance, and the steps that must use them. */
class Modified {
  readonly mocks = { steps: [], sleeps: [], retryDelays: [], eventTimeouts: [] } as Omit<
    StepMocks,
    "steps"
  > & {
    steps: StepMocks["steps"];
  };
  readonly events: { type: string; payload: string }[] = [];
  /** Journal keys of the steps that must use the mocks. */
  readonly expected = new Set<string>();

  add(change: Modification): void {
    const { mocks } = this;
    switch (change.do) {
      case "disableSleeps":
        mocks.sleeps = this.#with(mocks.sleeps, change.steps, "sleep");
        break;
      case "disableRetryDelays":
        mocks.retryDelays = this.#with(mocks.retryDelays, change.steps, "do");
        break;
      case "mockStepResult":
        mocks.steps.push({
          step: this.#expect(change.step, "do"),
          value: encode(change.result, "The result of the mock"),
        });
        break;
      case "mockStepError": {
        const { error, times: most } = change;
        mocks.steps.push({ step: this.#expect(change.step, "do"), error, times: most });
        break;
      }
      case "forceStepTimeout": {
        const error = {
          name: "WorkflowTimeoutError",
          message: "Execution timed out: the test kit forces it",
        };
        mocks.steps.push({ step: this.#expect(change.step, "do"), error, times: change.times });
        break;
      }
      case "forceEventTimeout":
        mocks.eventTimeouts = [...mocks.eventTimeouts, this.#expect(change.step, "waitForEvent")];
        break;
      case "mockEvent":
        this.events.push({ type: change.type, payload: encode(change.payload, "The payload of the mock") });
        break;
    }
  }

  #with(
    known: StepMocks["sleeps"],
    more: readonly StepInput[] | undefined,
    kind: string,
  ): StepMocks["sleeps"] {
    if (more === undefined || known === "all") return "all";
    return [...known, ...more.map((step) => this.#expect(step, kind))];
  }

  #expect({ name, index }: StepInput, kind: string): string {
    this.expected.add(`${kind}:${name}-${index}`);
    return `${name}-${index}`;
  }
}

const keyOf = ({ accountId, workflowName }: Pick<TestedInvocation, "accountId" | "workflowName">): string =>
  `${accountId} ${workflowName}`;

/** A workflow, or one instance of it. */
export type MockTarget = Omit<TestedInvocation, "instanceId"> & { instanceId?: string | undefined };

/** The mocks of workflows and of instances, and the instances that have started since `watch`. */
export class MockedWorkflows implements InvocationHooks {
  /** Mocks by workflow, or by workflow and instance. */
  readonly #modified = new Map<string, Modified>();
  readonly #seen = new Map<string, Set<string>>();
  readonly #crashes = new Set<string>();
  readonly #sendEvent: (to: TestedInvocation, event: { type: string; payload: string }) => void;

  constructor(sendEvent: (to: TestedInvocation, event: { type: string; payload: string }) => void) {
    this.#sendEvent = sendEvent;
  }

  /** Starts recording the instances of a workflow. */
  watch(target: MockTarget): void {
    this.#seen.set(keyOf(target), this.#seen.get(keyOf(target)) ?? new Set());
  }

  /** The ids of instances that have started since `watch`. */
  seen(target: MockTarget): string[] {
    return [...(this.#seen.get(keyOf(target)) ?? [])];
  }

  modify(target: MockTarget, change: Modification): void {
    const key = targetKey(target);
    const modified = this.#modified.get(key) ?? new Modified();
    this.#modified.set(key, modified);
    modified.add(change);
  }

  /** Whether the instance has started since `watch`. */
  hasStarted({ instanceId, ...target }: TestedInvocation): boolean {
    return this.#seen.get(keyOf(target))?.has(instanceId) === true;
  }

  crashAfter(target: TestedInvocation, { name, index }: StepInput): void {
    this.#crashes.add(`${targetKey(target)} do:${name}-${index}`);
  }

  /** Removes the mocks. Returns the journal keys of the steps that had to use them. */
  dispose(target: MockTarget): ReadonlySet<string> {
    const expected = this.#modified.get(targetKey(target))?.expected ?? new Set<string>();
    this.#modified.delete(targetKey(target));
    return expected;
  }

  clear(): void {
    this.#modified.clear();
    this.#seen.clear();
    this.#crashes.clear();
  }

  mocks(invocation: TestedInvocation): StepMocks | undefined {
    const isFirst = this.#note(invocation);
    const given = [this.#modified.get(keyOf(invocation)), this.#modified.get(targetKey(invocation))].filter(
      (each) => each !== undefined,
    );
    if (isFirst)
      for (const { events } of given) for (const event of events) this.#sendEvent(invocation, event);
    if (given.length === 0) return undefined;
    const all = (which: "sleeps" | "retryDelays"): StepMocks["sleeps"] => {
      const steps: string[] = [];
      for (const { mocks } of given) {
        const named = mocks[which];
        if (named === "all") return named;
        steps.push(...named);
      }
      return steps;
    };
    return {
      steps: given.flatMap(({ mocks }) => mocks.steps),
      sleeps: all("sleeps"),
      retryDelays: all("retryDelays"),
      eventTimeouts: given.flatMap(({ mocks }) => [...mocks.eventTimeouts]),
    };
  }

  crashes(invocation: TestedInvocation, key: string): boolean {
    return this.#crashes.delete(`${targetKey(invocation)} ${key}`);
  }

  #note({ instanceId, ...workflow }: TestedInvocation): boolean {
    const key = keyOf(workflow);
    const seen = this.#seen.get(key) ?? new Set<string>();
    this.#seen.set(key, seen);
    const isFirst = !seen.has(instanceId);
    seen.add(instanceId);
    return isFirst;
  }
}

const targetKey = (target: MockTarget): string =>
  target.instanceId === undefined ? keyOf(target) : `${keyOf(target)} ${target.instanceId}`;
