import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** Starts a cell in a process that is killed meanwhile. Its temporary folder marks all of its processes. */
export class KilledBoot {
  readonly #folder = mkdtempSync(join(tmpdir(), "selvedge-orphans-"));
  readonly #child = spawn(process.execPath, [join(import.meta.dirname, "boot-cell.ts")], {
    env: { ...process.env, TMPDIR: this.#folder },
    stdio: ["ignore", "pipe", "ignore"],
  });

  constructor() {
    chmodSync(this.#folder, 0o755); // cells of root run as another user
  }

  /** Resolves when the cell is about to be started. */
  async begun(): Promise<void> {
    await once(this.#child.stdout, "data");
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  /** The processes of the cell: under bubblewrap, they and their mounts name the folder. */
  processes(): { pid: number; command: string }[] {
    return readdirSync("/proc").flatMap((name) => {
      if (!/^\d+$/.test(name) || [process.pid, this.#child.pid].includes(Number(name))) return [];
      try {
        const command = commandOf(Number(name));
        const isOwn =
          command.includes(this.#folder) ||
          readFileSync(`/proc/${name}/mountinfo`, "latin1").includes(this.#folder);
        return isOwn ? [{ pid: Number(name), command }] : [];
      } catch {
        return []; // it has ended
      }
    });
  }

  /** The commands that are left when none of them ends any more; they are killed. */
  async left(timeoutMs = 10_000): Promise<string[]> {
    const end = performance.now() + timeoutMs;
    while (this.processes().length > 0 && performance.now() < end) await delay(20);
    const left = this.processes();
    for (const { pid } of left) process.kill(pid, "SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
    return left.map(({ command }) => command);
  }
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");
  } catch {
    return ""; // it has ended
  }
};
