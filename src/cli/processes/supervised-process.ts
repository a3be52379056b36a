import { spawn, type ChildProcess, type Serializable } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import {
  supervisedVariable,
  type Supervised,
  type ToSupervisor,
} from "../../platform/processes/supervised.ts";

/** A socket that is passed to a child, with its name in `LISTEN_FDNAMES`. */
export interface GivenSocket {
  name: string;
  fd: number;
}

/** A process of this program that the supervisor has started. */
export class SupervisedProcess {
  readonly supervised: Supervised;
  readonly exited: Promise<number | NodeJS.Signals>;
  /** Resolves with whether it became ready. */
  readonly ready: Promise<boolean>;
  isReady = false;
  readonly startedMs = performance.now();
  lastSignOfLifeMs = this.startedMs;
  readonly #process: ChildProcess;
  #stopped: Promise<number | NodeJS.Signals> | undefined;

  constructor(
    supervised: Supervised,
    sockets: readonly GivenSocket[],
    onMessage: (message: ToSupervisor) => void,
  ) {
    this.supervised = supervised;
    const [program, ...command] = process.argv.slice(1);
    // Sockets are passed as service managers pass them: descriptors from 3 on, see sd_listen_fds(3).
    this.#process = spawn(process.execPath, [...process.execArgv, program!, ...command], {
      stdio: ["ignore", "inherit", "inherit", ...sockets.map(({ fd }) => fd), "ipc"],
      env: {
        ...process.env,
        LISTEN_PID: String(process.pid),
        LISTEN_FDS: String(sockets.length),
        LISTEN_FDNAMES: sockets.map(({ name }) => name).join(":"),
        [supervisedVariable]: JSON.stringify(supervised),
      },
    });
    this.exited = new Promise((resolve) => {
      this.#process.once("error", () => resolve(1));
      this.#process.once("exit", (code, signal) => resolve(signal ?? code ?? 1));
    });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.ready = promise;
    for (const end of ["error", "exit"] as const) this.#process.once(end, () => resolve(false));
    this.#process.on("message", (received: Serializable) => {
      const message = received as ToSupervisor;
      this.lastSignOfLifeMs = performance.now();
      if (message.is === "ready") {
        this.isReady = true;
        resolve(true);
      }
      onMessage(message);
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get isAlive(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Makes the process answer `/readyz` with 503 from now on, and end later without a lame-duck period. */
  announceEnd(): void {
    if (this.#process.connected) this.#process.send("announce end", () => {});
  }

  /**
   * Sends SIGTERM, and SIGKILL after `msMax`. Further calls only wait, because a second SIGTERM would abort requests in
   * progress. Resolves with the exit code or the signal.
   */
  async stop(msMax: number): Promise<number | NodeJS.Signals> {
    return (this.#stopped ??= this.#stop(msMax));
  }

  async #stop(msMax: number): Promise<number | NodeJS.Signals> {
    this.signal("SIGTERM");
    const abort = new AbortController();
    const killed = delay(msMax, undefined, { signal: abort.signal }).then(
      () => this.signal("SIGKILL"),
      () => {},
    );
    const code = await this.exited;
    abort.abort();
    await killed;
    return code;
  }
}
