import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { eachLine } from "../../platform/util/bounded-lines.ts";
import { CpuClock } from "./cpu-clock.ts";
import { MemoryGauge } from "./memory-gauge.ts";
import type { Launch } from "./launch.ts";
import { protocolLimits } from "../settings.ts";

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The last lines of standard error. */
  lastWords: string;
}

/** One workerd process: start, CPU time, memory, end. */
export class CellProcess {
  readonly exited: Promise<Exit>;
  readonly listening: Promise<void>;
  readonly #child: ChildProcess;
  #pid = 0;
  #clock: CpuClock | undefined;
  #memory: MemoryGauge | undefined;

  constructor(launch: Launch, onMessage: (line: string) => void) {
    const { command, args, options } = launch;
    // A process group of its own, so that killing the group includes its children.
    const child = spawn(command, args, {
      ...options,
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    });
    this.#child = child;
    const lastLines: string[] = [];
    eachLine(child.stderr!, protocolLimits.lineBytes, (line) => {
      if (lastLines.push(line) > 20) lastLines.shift();
      onMessage(line);
    });
    this.exited = new Promise((resolve) => {
      child.once("error", (error) =>
        resolve({ code: null, signal: null, lastWords: `could not be started: ${error.message}` }),
      );
      child.once("exit", (code, signal) => resolve({ code, signal, lastWords: lastLines.join("\n") }));
    });
    child.once("exit", () => {
      this.#clock?.close();
      this.#memory?.close();
    });
    const info = launch.reportsPid ? readUntil("}", child.stdio[4] as Readable) : Promise.resolve("");
    const control = readUntil("\n", child.stdio[3] as Readable);
    this.listening = this.#listen(child, launch.reportsPid, control, info);
    this.listening.catch(() => {}); // handled by the caller that awaits it
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
    this.#memory = new MemoryGauge(this.#pid);
  }

  get pid(): number {
    return this.#pid;
  }

  /** CPU time of the thread that runs the scripts, as last updated by the kernel; NaN after the process has ended. */
  cpuMs(): number {
    return this.#clock?.writtenMs() ?? Number.NaN;
  }

  /** Resident memory; NaN after the process has ended. */
  rssBytes(): number {
    return this.#memory?.rssBytes() ?? Number.NaN;
  }

  /** Resolves when the process is certainly gone: under bubblewrap it may outlive the child for a moment. */
  async gone(): Promise<void> {
    await this.exited;
    while (this.#pid !== 0 && isAlive(this.#pid)) await setTimeout(5);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
    if (signal !== "SIGKILL" || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    // Under bubblewrap the child is bubblewrap itself, and workerd has left the process group: kill both.
    if (this.#child.pid !== undefined) killIfThere(-this.#child.pid);
    if (this.#pid !== 0 && this.#pid !== this.#child.pid) killIfThere(this.#pid);
  }
}

/** Whether a process exists and is not a zombie. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has ended
  }
}

/**
 * Returns the text of a stream up to a mark or to its end. Keeps reading afterwards, because a closed pipe
 * would kill the writer.
 */
async function readUntil(mark: string, stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    text += chunk.toString();
    if (text.includes(mark) || text.length > protocolLimits.lineBytes) break;
  }
  stream.on("error", () => {}).resume();
  return text;
}
