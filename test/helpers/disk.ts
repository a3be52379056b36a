import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Small disks are made by bubblewrap, where it is there and may make them. */
export const canMakeDisks =
  spawnSync("bwrap", ["--dev-bind", "/", "/", "--tmpfs", tmpdir(), "true"]).status === 0 ||
  process.env["CI_TOOLS"] === "1";

/** A disk of its own, in memory, reached through a process that has it. */
export async function smallDisk(bytes: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-disk-"));
  const disk = ["--dev-bind", "/", "/", "--size", String(bytes), "--tmpfs", folder, "--die-with-parent"];
  const holder = spawn("bwrap", [...disk, "sh", "-c", "echo $$; exec sleep 600"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    holder.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  const [pid] = (await once(holder.stdout, "data")) as [Buffer];
  return join(`/proc/${pid.toString().trim()}/root`, folder);
}

/** Writes to a file until less than so many bytes fit on its disk. */
export function fillDisk(path: string, bytesLeft: number): void {
  const file = openSync(path, "w");
  try {
    for (let size = Math.max(bytesLeft, 1024 * 1024); size >= bytesLeft; size /= 2) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}
