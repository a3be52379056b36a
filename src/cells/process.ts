import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { CpuClock } from "./cpu-clock.ts";
import type { Launch } from "./launch.ts";

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The last of what it wrote to its standard error. */
  lastWords: string;
}

/** One workerd process: its start, its CPU time and memory, its end. */
export class CellProcess {
  readonly exited: Promise<Exit>;
  readonly listening: Promise<void>;
  readonly #child: ChildProcess;
  #pid = 0;
  #clock: CpuClock | undefined;

  constructor(launch: Launch, onMessage: (line: string) => void) {
    const { command, args, options } = launch;
    // A group of its own, so that its end takes along what it has started so far.
    const child = spawn(command, args, {
      ...options,
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    });
    this.#child = child;
    const lastLines: string[] = [];
    createInterface(child.stderr!).on("line", (line) => {
      if (lastLines.push(line) > 20) lastLines.shift();
      onMessage(line);
    });
    this.exited = new Promise((resolve) => {
      child.once("error", (error) =>
        resolve({ code: null, signal: null, lastWords: `could not be started: ${error.message}` }),
      );
      child.once("exit", (code, signal) => resolve({ code, signal, lastWords: lastLines.join("\n") }));
    });
    child.once("exit", () => this.#clock?.close());
    const info = launch.reportsPid ? readUntil("}", child.stdio[4] as Readable) : Promise.resolve("");
    const control = readUntil("\n", child.stdio[3] as Readable);
    this.listening = this.#listen(child, launch.reportsPid, control, info);
    this.listening.catch(() => {}); // whoever awaits it is told
  }

  async #listen(
    child: ChildProcess,
    reportsPid: boolean,
    control: Promise<string>,
    info: Promise<string>,
  ): Promise<void> {
    const [event, pid] = await Promise.all([control, info]);
    if (!event.includes('"listen"')) throw new Error("the process ended before it listened");
    this.#pid = reportsPid ? Number(/"child-pid":\s*(\d+)/.exec(pid)![1]) : (child.pid ?? 0);
    this.#clock = new CpuClock(this.#pid);
  }

  get pid(): number {
    return this.#pid;
  }

  /** CPU time of the thread that runs the scripts, as the kernel has it written down; NaN when the process is gone. */
  cpuMs(): number {
    return this.#clock?.writtenMs() ?? Number.NaN;
  }

  /** Resident memory; NaN when the process is gone. */
  rssBytes(): number {
    try {
      return Number(readFileSync(`/proc/${this.#pid}/statm`, "latin1").split(" ")[1]) * pageBytes;
    } catch {
      return Number.NaN;
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
    if (signal !== "SIGKILL" || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    // Behind bubblewrap the child is its keeper; the process itself must not live on. It has left the group by then.
    if (this.#child.pid !== undefined) killIfThere(-this.#child.pid);
    if (this.#pid !== 0 && this.#pid !== this.#child.pid) killIfThere(this.#pid);
  }
}

const pageBytes = 4096;

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone already
  }
}

/** What a stream says up to a mark, or to its end. It is read on: a writer whose pipe is closed dies of it. */
async function readUntil(mark: string, stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    text += chunk.toString();
    if (text.includes(mark)) break;
  }
  stream.on("error", () => {}).resume();
  return text;
}
