import type { Duration } from "./clock.ts";
import type { ControlClient } from "./control-client.ts";

/** A step by its name. `index` selects one of several steps with this name, from 1. */
export interface WorkflowStepName {
  name: string;
  index?: number;
}

export type WorkflowStatus =
  | "queued"
  | "running"
  | "paused"
  | "errored"
  | "terminated"
  | "complete"
  | "waiting"
  | "waitingForPause";

/** Mocks the steps, sleeps and events of instances before they run. */
export interface WorkflowModifier {
  /** These sleeps take no time; all without an argument. */
  disableSleeps(steps?: WorkflowStepName[]): Promise<void>;
  /** The delays before retries of these steps take no time; all without an argument. */
  disableRetryDelays(steps?: WorkflowStepName[]): Promise<void>;
  /** The step is not run, and has this result, which is JSON. */
  mockStepResult(step: WorkflowStepName, result: unknown): Promise<void>;
  /** The attempts of the step throw this error: all, or the first `times`. */
  mockStepError(step: WorkflowStepName, error: Error, times?: number): Promise<void>;
  /** The attempts of the step time out: all, or the first `times`. */
  forceStepTimeout(step: WorkflowStepName, times?: number): Promise<void>;
  /** Sends the event before a wait for it begins. */
  mockEvent(event: { type: string; payload: unknown }): Promise<void>;
  /** The wait with this name times out at once. */
  forceEventTimeout(step: WorkflowStepName): Promise<void>;
}

export interface WorkflowAttempt {
  attempt: number;
  start: string;
  end: string | null;
  error: { name: string; message: string } | null;
  /** Whether the attempt ended with its process. Such attempts do not count towards the limit of retries. */
  interrupted: boolean;
}

/** The result of a replay: the steps in which the code differed from the journal. */
export interface WorkflowReplay {
  deterministic: boolean;
  /** Steps that the journal has and the code did not reach. */
  missed: readonly string[];
  /** The first step that the code reached and the journal lacks. */
  added: readonly string[];
  /** Whether the code ended with the same result or error message. */
  sameEnd: boolean;
}

/** An instance of a workflow under test. Waits end after 5 seconds, or after `ms`. */
export interface WorkflowInstanceIntrospector extends AsyncDisposable {
  readonly id: string;
  modify(change: (modifier: WorkflowModifier) => Promise<void> | void): Promise<void>;
  /** Throws as soon as the instance has ended with another status. */
  waitForStatus(status: WorkflowStatus, ms?: number): Promise<void>;
  /** Waits for the result of a step. Throws the step's error if the step failed. */
  waitForStepResult(step: WorkflowStepName, ms?: number): Promise<unknown>;
  /** Waits for the end, and returns the output. Throws the instance's error if it failed. */
  getOutput(ms?: number): Promise<unknown>;
  /** Waits for the end, and returns the error. Throws if the instance has none. */
  getError(ms?: number): Promise<{ name: string; message: string }>;
  attempts(step: WorkflowStepName): Promise<WorkflowAttempt[]>;
  /** Steps, sleeps and waits, as in the management API. */
  timeline(): Promise<object[]>;
  /** Moves the time of this instance forward, and not that of others. */
  fastForward(by: Duration): Promise<void>;
  /** Kills the process of the instance after this step has ended. */
  crashAfter(step: WorkflowStepName): Promise<void>;
  /** Replays the code of the ended instance with its journal. */
  replay(): Promise<WorkflowReplay>;
  /** Removes the mocks. Throws if one of them was not used by any step. */
  dispose(): Promise<void>;
}

/** The instances of a workflow that start from now on. */
export interface WorkflowIntrospector extends AsyncDisposable {
  /** Mocks steps, sleeps and events of all instances that start later. */
  modifyAll(change: (modifier: WorkflowModifier) => Promise<void> | void): Promise<void>;
  /** The instances that have started since the recording began. */
  get(): Promise<WorkflowInstanceIntrospector[]>;
  /** Removes the mocks. Throws if one of them was not used by any step. */
  dispose(): Promise<void>;
}

type Query = Record<string, string | undefined>;

/** The paths of a workflow on the control surface. */
class WorkflowCalls {
  readonly #control: ControlClient;
  readonly #path: string;
  readonly #account: string | undefined;

  constructor(control: ControlClient, workflow: string, account: string | undefined) {
    this.#control = control;
    this.#path = `/workflows/${encodeURIComponent(workflow)}`;
    this.#account = account;
  }

  send<T = void>(method: string, path: string, body?: object, query: Query = {}): Promise<T> {
    const given = Object.entries({ ...query, account: this.#account }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    );
    const search = given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
    return this.#control.json<T>(method, `${this.#path}${path}${search}`, body);
  }
}

/** Starts recording the instances of a workflow. */
export async function introspectWorkflow(
  control: ControlClient,
  workflow: string,
  account?: string,
): Promise<WorkflowIntrospector> {
  const calls = new WorkflowCalls(control, workflow, account);
  await calls.send("POST", "/introspect");
  const before = new Set((await calls.send<{ ids: string[] }>("GET", "/instances")).ids);
  const dispose = async (): Promise<void> => calls.send("POST", "/dispose");
  return {
    modifyAll: async (change) => modify(calls, change, {}),
    async get() {
      const { ids } = await calls.send<{ ids: string[] }>("GET", "/instances");
      return ids.filter((id) => !before.has(id)).map((id) => instanceOf(calls, id));
    },
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Controls an instance by its id, also before the instance is created. */
export async function introspectWorkflowInstance(
  control: ControlClient,
  workflow: string,
  id: string,
  account?: string,
): Promise<WorkflowInstanceIntrospector> {
  const calls = new WorkflowCalls(control, workflow, account);
  await calls.send("POST", "/introspect");
  return instanceOf(calls, id);
}

function instanceOf(calls: WorkflowCalls, id: string): WorkflowInstanceIntrospector {
  const path = `/instances/${encodeURIComponent(id)}`;
  const wait = (ms: number | undefined): Query => (ms === undefined ? {} : { wait: String(ms) });
  const stepPath = ({ name, index = 1 }: WorkflowStepName): string =>
    `${path}/steps/${encodeURIComponent(`${name}-${index}`)}`;
  const end = async (ms: number | undefined): Promise<Ended> =>
    calls.send<Ended>("GET", path, undefined, wait(ms));
  const dispose = async (): Promise<void> => calls.send("POST", "/dispose", undefined, { instance: id });
  return {
    id,
    modify: async (change) => modify(calls, change, { instance: id }),
    async waitForStatus(status, ms) {
      await calls.send("GET", path, undefined, { status, ...wait(ms) });
    },
    async waitForStepResult(step, ms) {
      const found = await calls.send<StepEnd>("GET", stepPath(step), undefined, wait(ms));
      if ("error" in found) throw errorOf(found.error);
      return found.result;
    },
    async getOutput(ms) {
      const { status, output, error } = await end(ms);
      if (status === "complete") return output;
      throw error === null ? new Error(`The instance "${id}" is ${status}`) : errorOf(error);
    },
    async getError(ms) {
      const { status, error } = await end(ms);
      if (error === null) throw new Error(`The instance "${id}" is ${status} and has no error`);
      return error;
    },
    attempts: async (step) =>
      (await calls.send<{ attempts: WorkflowAttempt[] }>("GET", `${stepPath(step)}/attempts`)).attempts,
    timeline: async () => (await calls.send<{ timeline: object[] }>("GET", `${path}/timeline`)).timeline,
    fastForward: async (by) => calls.send("POST", `${path}/fast-forward`, { by }),
    crashAfter: async (step) => calls.send("POST", `${path}/crash`, { after: step }),
    replay: async () => calls.send<WorkflowReplay>("POST", `${path}/replay`),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

interface Ended {
  status: WorkflowStatus;
  output: unknown;
  error: { name: string; message: string } | null;
}
type StepEnd = { result: unknown } | { error: { name: string; message: string } };

const errorOf = ({ name, message }: { name: string; message: string }): Error =>
  Object.assign(new Error(message), { name });

async function modify(
  calls: WorkflowCalls,
  change: (modifier: WorkflowModifier) => Promise<void> | void,
  query: Query,
): Promise<void> {
  const sent: Promise<void>[] = [];
  const send = (made: object): Promise<void> => {
    const sending = calls.send("POST", "/modify", made, query);
    sent.push(sending);
    return sending;
  };
  const repeated = (times: number | undefined): object => (times === undefined ? {} : { times });
  await change({
    disableSleeps: (steps) => send({ do: "disableSleeps", ...(steps === undefined ? {} : { steps }) }),
    disableRetryDelays: (steps) =>
      send({ do: "disableRetryDelays", ...(steps === undefined ? {} : { steps }) }),
    mockStepResult: (step, result) => send({ do: "mockStepResult", step, result }),
    mockStepError: (step, { name, message }, times) =>
      send({ do: "mockStepError", step, error: { name, message }, ...repeated(times) }),
    forceStepTimeout: (step, times) => send({ do: "forceStepTimeout", step, ...repeated(times) }),
    mockEvent: ({ type, payload }) => send({ do: "mockEvent", type, payload }),
    forceEventTimeout: (step) => send({ do: "forceEventTimeout", step }),
  });
  // The caller's function may not have awaited every change.
  await Promise.all(sent);
}
