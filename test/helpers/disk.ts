import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";

/** Small disks are made by bubblewrap, where it is there and may make them. */
export const canMakeDisks =
  spawnSync("bwrap", ["--dev-bind", "/", "/", "--tmpfs", tmpdir(), "true"]).status === 0 ||
  process.env["CI_TOOLS"] === "1";

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
