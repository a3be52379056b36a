import { open, rm, type FileHandle } from "node:fs/promises";
import type { Archive } from "../storage/archive/archive.ts";
import { damaged } from "../storage/archive/errors.ts";
import { readCompressed } from "../storage/archive/parts.ts";
import { writePages } from "../storage/live-files/copy-database.ts";
import { frameHeaderBytes } from "../storage/live-files/log-format.ts";
import type { ObjectFile } from "../storage/live-files/object-files.ts";
import type { Catalog, FoundBase } from "./catalog.ts";
import { readEntries, type Entry } from "./segment.ts";
import type { Stamp } from "./stamps.ts";

/** Frames are missing in the log, because they were not read or not shipped in time. */
export class MissingFrames extends Error {
  readonly since: Stamp;

  constructor(since: Stamp) {
    super("The log of the object has a gap at this time");
    this.since = since;
  }
}

interface Log {
  catalog: Catalog;
  files: Archive;
}

/**
 * Writes the state of a file at a moment to `to`. Returns false if the file did not exist then. Throws a
 * BackupError that names a damaged part of the log. When the moment is in a gap of the log, throws
 * MissingFrames; with `takesEarlier`, calls it and writes the last state before the gap instead.
 */
export async function writeState(
  { catalog, files }: Log,
  file: ObjectFile,
  at: Stamp,
  { to, takesEarlier }: { to: string; takesEarlier?: () => void },
): Promise<boolean> {
  const base = catalog.baseOf(file, at);
  if (base === undefined || base.isGone) return false;
  // The cell can write to this folder and may have put a link at this path.
  await rm(to, { force: true });
  const target = await open(to, "wx+", 0o600);
  try {
    await writeBase(target, files, base);
    const frames: Entry[] = [];
    let last: { salt: string; next: number } | undefined;
    let applied: Stamp = base.start;
    for (const path of catalog.segmentsOf(file, base.start, at))
      for (const entry of await readEntries(files, path)) {
        if (!isOf(entry, file) || entry.stamp <= base.start || entry.stamp > at) continue;
        if (entry.kind === "gap" && entry.stamp > base.stamp) {
          if (takesEarlier === undefined) throw new MissingFrames(entry.stamp);
          takesEarlier();
          return true;
        }
        // A node that cannot know whether PostgreSQL has added its segment adds the entries once more.
        if (entry.kind !== "frames" || entry.stamp <= applied) continue;
        applied = entry.stamp;
        const { salt, first, pageBytes, pages } = entry as Required<Entry>;
        const frameBytes = frameHeaderBytes + pageBytes;
        const expected = salt === last?.salt ? last.next : 1;
        if (last !== undefined && first > expected)
          throw damaged(path, "does not continue the segment before it");
        // This segment repeats frames if a kill came after a shipment and before the node's note of it.
        const bytes =
          last === undefined ? entry.bytes : entry.bytes.subarray((expected - first) * frameBytes);
        if (bytes.length === 0) continue;
        last = { salt, next: first + entry.bytes.length / frameBytes };
        frames.push({ ...entry, bytes });
        if (pages !== 0) await apply(target, frames.splice(0));
      }
    return true;
  } finally {
    await target.close();
  }
}

const isOf = (entry: ObjectFile, { namespace, name }: ObjectFile): boolean =>
  entry.namespace === namespace && entry.name === name;

async function writeBase(target: FileHandle, files: Archive, base: FoundBase): Promise<void> {
  if (base.part !== null) {
    for await (const chunk of readCompressed(files, base.part)) await target.appendFile(chunk);
    return;
  }
  const entries = await readEntries(files, base.segment);
  const found = entries.find((each) => isOf(each, base) && each.kind === "base" && each.stamp === base.stamp);
  if (found === undefined) throw damaged(base.segment, `has no state of ${base.name}`);
  await target.appendFile(found.bytes);
}

/** Applies the frames of whole commits. */
async function apply(target: FileHandle, frames: readonly Entry[]): Promise<void> {
  for (const { bytes, pageBytes } of frames) {
    const size = await writePages(target, bytes, pageBytes!);
    if (size !== undefined) await target.truncate(size);
  }
}
