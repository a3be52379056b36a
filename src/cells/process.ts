import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
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
  #schedstat = -1;
  readonly #buffer = Buffer.alloc(128);

  constructor(launch: Launch, onMessage: (line: string) => void) {
    const { command, args, options } = launch;
    const child = spawn(command, args, { ...options, stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
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
    child.once("exit", () => this.#closeSchedstat());
    const info = launch.reportsPid ? firstLine(child.stdio[4] as Readable) : Promise.resolve("");
    const control = firstLine(child.stdio[3] as Readable);
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
    this.#schedstat = openSync(`/proc/${this.#pid}/schedstat`, "r");
  }

  get pid(): number {
    return this.#pid;
  }

  /** CPU time of the thread that runs the scripts; NaN when the process is gone. */
  cpuMs(): number {
    if (this.#schedstat < 0) return Number.NaN;
    try {
      const length = readSync(this.#schedstat, this.#buffer, 0, this.#buffer.length, 0);
      const text = this.#buffer.toString("latin1", 0, length);
      return Number(text.slice(0, text.indexOf(" "))) / 1e6;
    } catch {
      return Number.NaN;
    }
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
    // Behind bubblewrap the child is its keeper; the process itself must not live on.
    if (signal === "SIGKILL" && this.#pid !== 0 && this.#pid !== this.#child.pid && this.#schedstat >= 0) {
      try {
        process.kill(this.#pid, "SIGKILL");
      } catch {
        // gone already
      }
    }
  }

  #closeSchedstat(): void {
    if (this.#schedstat >= 0) closeSync(this.#schedstat);
    this.#schedstat = -1;
  }
}

const pageBytes = 4096;

/** The first line of a stream, or what there was of it at its end. */
async function firstLine(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    text += chunk.toString();
    if (text.includes("\n") || text.includes("}")) {
      stream.on("error", () => {}).resume();
      return text;
    }
  }
  return text;
}
