import { readCall } from "./parsed-messages.ts";
import type {
  EndedAttempt,
  InvocationListener,
  InvocationRunner,
  Placement,
  WorkflowCode,
} from "./invocation-runner.ts";
import type { WorkflowCells } from "./workflow-cells.ts";
import type { Ending, Signal, StartMessage, StepMocks } from "../worker/messages.ts";

/** An invocation as the test kit sees it. */
export interface TestedInvocation {
  accountId: string;
  scriptName?: string;
  workflowName: string;
  instanceId: string;
}

/** The hooks of the test kit. */
export interface InvocationHooks {
  /** The mocks for an invocation that starts. */
  mocks(invocation: TestedInvocation): StepMocks | undefined;
  /** Whether the cell's process should end, after the outcome of a step became durable. */
  crashes(invocation: TestedInvocation, key: string): boolean;
}

/** The result of a replay: its ending, or the key of a step that is not in the journal. */
export type Replayed = { ending: Ending } | { added: string };

interface Replay {
  value: (key: string) => string;
  done: (replayed: Replayed) => void;
  failed: (error: Error) => void;
}

/**
 * Wraps the cells of a platform under test: adds mocks to invocations, ends cells after a step, and replays
 * ended instances.
 */
export class TestedInvocations implements InvocationRunner, InvocationListener {
  hooks: InvocationHooks | undefined;
  /** The engine. */
  listener!: InvocationListener;
  readonly #cells: WorkflowCells;
  readonly #started = new Map<number, TestedInvocation>();
  readonly #replays = new Map<number, Replay>();
  #replayCount = 0;

  constructor(cells: WorkflowCells) {
    this.#cells = cells;
    cells.listener = this;
  }

  run(invocation: number, code: WorkflowCode, start: StartMessage, manner: Placement): void {
    this.#cells.run(invocation, code, this.#mocked(invocation, code, start), manner);
  }

  /** Never prepares standby invocations, because the clock may move before they begin. */
  standBy(): void {}

  standsBy(): boolean {
    return false;
  }

  begin(): boolean {
    return false;
  }

  answer(invocation: number, call: number, answer: string): void {
    this.#cells.answer(invocation, call, answer);
  }

  signal(invocation: number, signal: Signal): void {
    this.#cells.signal(invocation, signal);
  }

  attempted(invocation: number, attempt: EndedAttempt): void {
    this.#cells.attempted(invocation, attempt);
  }

  call(invocation: number, call: number, text: string): Promise<void> | undefined {
    const replay = this.#replays.get(invocation);
    if (replay !== undefined) return this.#answerReplay(replay, invocation, call, text);
    const answered = this.listener.call(invocation, call, text);
    const started = this.#started.get(invocation);
    const message = this.hooks === undefined ? undefined : readCall(text);
    const isOutcome = message?.[0] === "done" || (message?.[0] === "failed" && message[5] === null);
    if (started === undefined || !isOutcome || answered === undefined) return answered;
    return this.#crashAfter(answered, invocation, started, message[1]);
  }

  note(invocation: number, text: string): void {
    if (!this.#replays.has(invocation)) this.listener.note(invocation, text);
  }

  ended(invocation: number, ending: Ending): void {
    this.#started.delete(invocation);
    const replay = this.#replays.get(invocation);
    if (replay === undefined) this.listener.ended(invocation, ending);
    else this.#finish(invocation, { ending });
  }

  lost(invocation: number, mayBeCulprit: boolean): void {
    this.#started.delete(invocation);
    const replay = this.#replays.get(invocation);
    if (replay === undefined) this.listener.lost(invocation, mayBeCulprit);
    else {
      this.#replays.delete(invocation);
      replay.failed(new Error("the cell of a replay has ended"));
    }
  }

  /** The processes of the invocations of a script, or of all. */
  processesOf(script: string | undefined): number[] {
    return [...this.#started].flatMap(([invocation, { scriptName }]) =>
      script === undefined || scriptName === script ? (this.#cells.processOf(invocation)?.pid ?? []) : [],
    );
  }

  /** Runs the code of an instance against its journal. Nothing is written, and no step runs. */
  replay(code: WorkflowCode, start: StartMessage, value: (key: string) => string): Promise<Replayed> {
    const invocation = ++this.#replayCount; // the engine's numbers begin at its time in milliseconds
    const mocks: StepMocks = { steps: [], sleeps: [], retryDelays: [], eventTimeouts: [], isReplay: true };
    return new Promise((done, failed) => {
      this.#replays.set(invocation, { value, done, failed });
      this.#cells.run(invocation, code, { ...start, mocks }, "shared");
    });
  }

  async #crashAfter(
    answered: Promise<void>,
    invocation: number,
    started: TestedInvocation,
    key: string,
  ): Promise<void> {
    await answered;
    if (this.hooks?.crashes(started, key) === true) this.#cells.processOf(invocation)?.kill("SIGKILL");
  }

  #mocked(invocation: number, { accountId, scriptName }: WorkflowCode, start: StartMessage): StartMessage {
    const { workflowName, instanceId } = start;
    const started: TestedInvocation = { accountId, workflowName, instanceId };
    this.#started.set(invocation, { ...started, scriptName });
    const mocks = this.hooks?.mocks(started);
    return mocks === undefined ? start : { ...start, mocks };
  }

  #answerReplay(replay: Replay, invocation: number, call: number, text: string): undefined {
    const message = readCall(text);
    if (message?.[0] === "get") this.#cells.answer(invocation, call, replay.value(message[1]));
    else {
      this.#finish(invocation, { added: message?.[1] ?? "" });
      this.#cells.signal(invocation, "abort");
    }
    return undefined;
  }

  #finish(invocation: number, replayed: Replayed): void {
    this.#replays.get(invocation)?.done(replayed);
    this.#replays.delete(invocation);
  }
}
