import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readlinkSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Small disks are made by bubblewrap, where it is there and may make them. */
export const canMakeDisks =
  spawnSync("bwrap", ["--dev-bind", "/", "/", "--tmpfs", tmpdir(), "true"]).status === 0 ||
  process.env["CI_TOOLS"] === "1";

/** A disk of its own, in memory. */
export interface SmallDisk {
  /** Its folder, as this process reaches it. */
  outside: string;
  /** Its folder, for a command that runs behind `enter`. */
  inside: string;
  enter: readonly string[];
}

/** Makes a disk that ends with the test. */
export async function newDisk(bytes: number): Promise<SmallDisk> {
  const inside = mkdtempSync(join(tmpdir(), "selvedge-disk-"));
  const disk = ["--dev-bind", "/", "/", "--size", String(bytes), "--tmpfs", inside, "--die-with-parent"];
  const holder = spawn("bwrap", [...disk, "sh", "-c", "echo $$; exec sleep 600"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    holder.kill("SIGKILL");
    rmSync(inside, { recursive: true, force: true });
  });
  const [output] = (await once(holder.stdout, "data")) as [Buffer];
  const pid = output.toString().trim();
  const isOwnUser = readlinkSync(`/proc/${pid}/ns/user`) !== readlinkSync("/proc/self/ns/user");
  const user = isOwnUser ? ["--user", "--preserve-credentials"] : [];
  return {
    inside,
    outside: join(`/proc/${pid}/root`, inside),
    enter: ["nsenter", "--target", pid, ...user, "--mount", `--wd=${process.cwd()}`],
  };
}

/** The folder of a disk of its own, reached through a process that has it. */
export const smallDisk = async (bytes: number): Promise<string> => (await newDisk(bytes)).outside;

/** Writes to a file until less than so many bytes fit on its disk. */
export function fillDisk(path: string, bytesLeft: number): void {
  const file = openSync(path, "w");
  try {
    for (let size = Math.max(bytesLeft, 1024 * 1024); size >= bytesLeft && size >= 1; size >>= 1) {
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
