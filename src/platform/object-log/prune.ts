import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Archive } from "../storage/archive/archive.ts";
import { compressed, writePart } from "../storage/archive/parts.ts";
import type { ObjectFile } from "../storage/live-files/object-files.ts";
import { repeat } from "../util/repeat.ts";
import { contentPath, markBase, removeBase } from "./bases.ts";
import type { Catalog } from "./catalog.ts";
import type { LogOrder } from "./log-order.ts";
import { writeState } from "./states.ts";
import { noStamp, stampAt, type Stamp } from "./stamps.ts";

interface Log {
  catalog: Catalog;
  order: LogOrder;
  files: Archive;
}

const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;

/** Prunes the log every six hours, so that it covers this many days. Returns the function that stops this. */
export const startPruning = (
  log: Log & { ready: () => Promise<void> },
  days: number,
  aside: string,
  logger: Logger,
): (() => Promise<void>) =>
  repeat(
    async () => {
      await log.ready();
      if (log.order.prunes()) await prune(log, stampAt(Date.now() - days * dayMs), aside);
    },
    { everyMs: 6 * hourMs, firstMs: hourMs / 6 },
    { logger, message: "removing old parts of the log of objects failed" },
  );

/**
 * Removes bases and segments that no restore to a moment after `cutoff` needs. A database that has not
 * changed since then gets a new base, made from the log, so that it needs no segments. `aside` is a folder
 * for temporary files.
 */
export async function prune(log: Log, cutoff: Stamp, aside: string): Promise<void> {
  const { catalog, files } = log;
  const newest = catalog.lastSegment;
  let needed: Stamp = newest?.stamp ?? noStamp;
  for (const file of catalog.files()) {
    const from = await pruneFile(log, file, cutoff, aside);
    if (from !== undefined && from < needed) needed = from;
  }
  for (const { number, path, stamp } of catalog.segments()) {
    if (stamp >= needed || number === newest?.number) return;
    await files.remove(path);
    await log.order.removeSegment(number);
  }
}

/** Returns the moment after which the file needs segments; undefined if it needs none. */
async function pruneFile(
  log: Log,
  file: ObjectFile,
  cutoff: Stamp,
  aside: string,
): Promise<Stamp | undefined> {
  const { catalog } = log;
  let kept = catalog.baseOf(file, cutoff);
  if (kept === undefined) return catalog.firstStartOf(file);
  const lastChange = catalog.lastChangeOf(file) ?? kept.stamp;
  const isIdle = lastChange <= cutoff;
  if (isIdle && kept.isGone) {
    for (const base of catalog.olderBases(file, kept.stamp)) await drop(log, base);
    catalog.removeFile(file);
    return undefined;
  }
  if (isIdle && (kept.part === null || lastChange > kept.stamp)) {
    await makeBase(log, file, lastChange > kept.stamp ? lastChange : kept.stamp, aside);
    kept = catalog.baseOf(file, cutoff)!;
  }
  for (const base of catalog.olderBases(file, kept.stamp)) await drop(log, base);
  if (kept.part !== null && lastChange <= kept.stamp) return undefined;
  return kept.start < kept.stamp ? kept.start : kept.stamp;
}

async function drop(log: Log, base: ReturnType<Catalog["olderBases"]>[number]): Promise<void> {
  const { part } = base;
  if (part === null) return log.catalog.removeBase(base);
  await removeBase(log.files, { ...base, part });
  await log.order.removeBase({ ...base, part });
}

/** Makes a base from the log: the state of a file at a moment after which it did not change. */
async function makeBase(log: Log, file: ObjectFile, stamp: Stamp, aside: string): Promise<void> {
  const to = join(aside, "base.db");
  try {
    if (!(await writeState(log, file, stamp, { to, takesEarlier: () => {} }))) return;
    const path = contentPath(file, stamp, randomBytes(4).toString("hex"));
    const part = await writePart(log.files, path, compressed(createReadStream(to)));
    const base = { ...file, start: stamp, stamp, part };
    await markBase(log.files, base);
    await log.order.addBase(base, log.order.right());
  } finally {
    await rm(to, { force: true });
  }
}
