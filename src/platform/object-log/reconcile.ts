import type { Archive } from "../storage/archive/archive.ts";
import { damaged } from "../storage/archive/errors.ts";
import { basesIn } from "./bases.ts";
import { contentsOf, type Catalog } from "./catalog.ts";
import { parseSegmentPath, readEntries, segmentsIn } from "./segment.ts";

/**
 * Adds segments and bases to a catalog that are in the store of the log and not in the catalog yet. Throws a
 * BackupError that names a missing or damaged segment.
 */
export async function reconcile(catalog: Catalog, files: Archive): Promise<void> {
  const isNew = catalog.lastSegment === undefined;
  const found: { number: number; path: string; stamp: string }[] = [];
  for await (const { path } of segmentsIn(files, catalog.lastSegment?.number)) {
    const name = parseSegmentPath(path);
    if (name !== undefined && !catalog.has(name.number)) found.push({ ...name, path });
  }
  found.sort((a, b) => a.number - b.number);
  let last = catalog.lastSegment?.number ?? (found[0]?.number ?? 1) - 1;
  for (const { number, path, stamp } of found) {
    if (number <= last) continue;
    if (number !== last + 1) throw damaged("the log of objects", `lacks segment ${last + 1}`);
    catalog.add({ number, path, stamp }, contentsOf(await readEntries(files, path)));
    last = number;
  }
  if (isNew) for await (const base of basesIn(files)) catalog.addBase(base);
}
