import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fillDisk } from "../helpers/disk.ts";

/** A folder on a disk of its own, where this process may mount one. */
export interface SmallFolder {
  path: string;
  /** Undefined where the folder is on no disk of its own. */
  disk: { fill(): void; heal(): void } | undefined;
  remove(): void;
}

const megabytes = 192;

export function smallFolder(path: string): SmallFolder {
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]);
  if (status !== 0) return { path, disk: undefined, remove: () => {} };
  const filler = join(path, "filler");
  return {
    path,
    disk: { fill: () => fillDisk(filler, 1), heal: () => rmSync(filler, { force: true }) },
    remove: () => void spawnSync("umount", ["--lazy", path]),
  };
}
