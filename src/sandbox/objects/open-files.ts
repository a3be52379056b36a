import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { ActingObject } from "./standing.ts";

const lookEveryMs = 10;

/**
 * Whether a process has databases of an object open. SQLite removes the log of a database with its last connection; if
 * there is a log, it may be of a process that was killed, so the open files of the present one tell.
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
  if (descriptors === undefined) return true; // nothing tells
  const paths = await Promise.all(descriptors.map(async (fd) => readlink(join(open, fd)).catch(() => "")));
  return paths.some((path) => {
    const [file = "", parent] = path.split("/").toReversed();
    return parent === namespace && /\.sqlite(?:-wal)?$/.test(file) && isPart(file);
  });
}

/** Waits until a process has closed the databases of an object. Returns whether it has in time. */
export async function closesFiles(
  folder: string,
  object: ActingObject,
  pid: number,
  { part, withinMs, also = () => true }: { part: "all" | "facets"; withinMs: number; also?: () => boolean },
): Promise<boolean> {
  const until = performance.now() + withinMs;
  for (;;) {
    if (also() && !(await hasOpen(folder, object, pid, part))) return true;
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}
