import { AsyncLocalStorage } from "node:async_hooks";
import type {
  InvocationListener,
  InvocationRunner,
  WorkflowCode,
} from "../../src/products/workflows/cells/invocation-runner.ts";
import type { Signal, StartMessage } from "../../src/products/workflows/worker/messages.ts";
import {
  runInvocation,
  Invocation,
  type InvocationHost,
  type RunnableWorkflow,
} from "../../src/products/workflows/worker/run.ts";
import type { World } from "./simulated-world.ts";

interface Running {
  /** Undefined while it stands by. */
  invocation: Invocation | undefined;
  answers: Map<number, (answer: string) => void>;
  cell: number;
  signals: Signals;
  begun: PromiseWithResolvers<StartMessage>;
  /** Whether the engine has been notified of its death. */
  isLost: boolean;
}

/** Keeps signals of an invocation until it listens. */
class Signals {
  #listener: ((signal: Signal) => void) | undefined;
  readonly #early: Signal[] = [];

  listen(listener: (signal: Signal) => void): void {
    this.#listener = listener;
    for (const signal of this.#early.splice(0)) listener(signal);
  }
  send(signal: Signal): void {
    if (this.#listener === undefined) this.#early.push(signal);
    else this.#listener(signal);
  }
}

/** Cells in memory: the real step object, over delayed streams, with cells that die and continue to send. */
export class SimulatedCells implements InvocationRunner {
  readonly running = new Map<number, Running>();
  listener!: InvocationListener;
  readonly #world: World;
  readonly #workflow: (start: StartMessage, invocation: number) => RunnableWorkflow;
  readonly #inside = new AsyncLocalStorage<true>();
  #cell = 0;

  constructor(world: World, workflow: (start: StartMessage, invocation: number) => RunnableWorkflow) {
    this.#world = world;
    this.#workflow = workflow;
  }

  run(number: number, code: WorkflowCode, start: StartMessage): void {
    this.standBy(number, code);
    this.running.get(number)!.begun.resolve(structuredClone(start));
  }

  standBy(number: number, _code: WorkflowCode): void {
    const answers = new Map<number, (answer: string) => void>();
    const signals = new Signals();
    let calls = 0;
    // Messages keep their order, as on a WebSocket.
    let last = 0;
    const send = (deliver: () => void): void => {
      last = Math.max(last + 0.001, this.#world.time + this.#world.delay());
      this.#world.at(last, deliver);
    };
    const port = {
      call: (message: string): Promise<string> => {
        const call = ++calls;
        send(() => void this.listener.call(number, call, message));
        if (this.#world.chance(0.02)) send(() => void this.listener.call(number, call, message));
        return new Promise((resolve) => answers.set(call, resolve));
      },
      note: (message: string): void => send(() => this.listener.note(number, message)),
      listen: (listener: (signal: Signal) => void): void => signals.listen(listener),
    };
    const host: InvocationHost = {
      after: (ms, run) => this.#world.after(ms, run),
      now: () => this.#world.now(),
      isInsideStep: () => this.#inside.getStore() === true,
      insideStep: (run) => this.#inside.run(true, run),
      isNonRetryable: (error) => error instanceof Error && error.name === "NonRetryableError",
    };
    const running: Running = {
      invocation: undefined,
      answers,
      cell: this.#cell,
      signals,
      begun: Promise.withResolvers(),
      isLost: false,
    };
    this.running.set(number, running);
    const wait = async (): Promise<void> => {
      const start = await running.begun.promise;
      running.invocation = new Invocation(port, start, host);
      const ending = await runInvocation(running.invocation, start, this.#workflow(start, number));
      send(() => {
        this.running.delete(number);
        this.listener.ended(number, ending);
      });
    };
    this.#world.after(this.#world.delay(), () => void wait());
  }

  standsBy(number: number): boolean {
    return this.running.get(number)?.isLost === false;
  }

  begin(number: number, start: StartMessage): boolean {
    const running = this.running.get(number);
    if (running?.isLost !== false) return false;
    this.#world.after(this.#world.delay(), () => running.begun.resolve(structuredClone(start)));
    return true;
  }

  answer(number: number, call: number, answer: string): void {
    this.#world.after(this.#world.delay(), () => this.running.get(number)?.answers.get(call)?.(answer));
  }

  signal(number: number, signal: Signal): void {
    this.#world.after(this.#world.delay(), () => {
      this.running.get(number)?.signals.send(signal);
      if (signal === "abort") this.running.delete(number);
    });
  }

  /** The process dies. Its messages may still arrive, and its code may even run a little longer. */
  kill(mayBeCulprit: boolean): void {
    const dead = [...this.running.entries()].filter(([, running]) => running.cell === this.#cell);
    this.#cell++;
    for (const [number, running] of dead) {
      if (this.#world.chance(0.7)) {
        // Until the engine learns of the death, its start messages have no effect.
        running.begun = Promise.withResolvers();
        running.invocation?.close();
        if (running.invocation !== undefined) this.running.delete(number);
      }
      this.#world.after(this.#world.delay(), () => {
        running.isLost = true;
        this.listener.lost(number, mayBeCulprit);
      });
    }
  }
}
