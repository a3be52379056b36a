import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Cell } from "../cell.ts";
import type { ActingObject } from "./standing.ts";

const checkEveryMs = 10;
const closeMs = 2000;

/**
 * Whether a process has databases of an object open. SQLite removes the log of a database with its last connection. An
 * existing log may be left from a process that was killed, so the open files of the present process are read too.
 */
async function hasOpen(
  folder: string,
  { namespace, id }: ActingObject,
  pid: number,
  part: "all" | "facets",
): Promise<boolean> {
  const isPart = (name: string): boolean =>
    name.startsWith(`${id}.`) && (part === "all" || !name.startsWith(`${id}.sqlite`));
  const names = await readdir(join(folder, namespace)).catch(() => []);
  if (!names.some((name) => isPart(name) && name.endsWith("-wal"))) return false;
  const open = `/proc/${pid}/fd`;
  const descriptors = await readdir(open).catch(() => undefined);
  if (descriptors === undefined) return true; // unknown
  const paths = await Promise.all(descriptors.map(async (fd) => readlink(join(open, fd)).catch(() => "")));
  return paths.some((path) => {
    const [file = "", parent] = path.split("/").toReversed();
    return parent === namespace && /\.sqlite(?:-wal)?$/.test(file) && isPart(file);
  });
}

/** Waits until a cell has closed the databases of an object, which has ended. Returns false if that takes too long. */
export async function closesFiles(
  folder: string,
  object: ActingObject,
  cell: Cell,
  { part, hasRuns }: { part: "all" | "facets"; hasRuns: () => boolean },
): Promise<boolean> {
  const until = performance.now() + closeMs;
  for (;;) {
    const isBusy = part === "all" && hasRuns() && !cell.isDead;
    if (!isBusy && !(await hasOpen(folder, object, cell.process.pid, part))) return true;
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, checkEveryMs));
  }
}
