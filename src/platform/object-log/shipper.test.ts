import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FolderArchive } from "../storage/archive/folder.ts";
import { Catalog } from "./catalog.ts";
import { readEntries, segmentsIn, type Entry } from "./segment.ts";
import { ownOrder } from "./log-order.ts";
import { Shipper } from "./shipper.ts";
import { stampAt } from "./stamps.ts";

const file = { namespace: "a".repeat(32), name: `${"b".repeat(64)}.1.sqlite` };

it("does not wait for dropped entries, and records their gap in the log", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-shipper-"));
  const files = new FolderArchive(join(folder, "store"));
  const catalog = new Catalog(join(folder, "catalog.db"));
  const shipper = new Shipper({
    catalog,
    files,
    order: ownOrder(catalog),
    ready: async () => {},
    statesOf: () => [],
  });
  const entry = (kind: Entry["kind"], ms: number): Entry => {
    const bytes = Buffer.alloc(kind === "base" ? 4096 : 0);
    return { ...file, kind, stamp: stampAt(ms), ...(kind === "base" && { start: stampAt(ms) }), bytes };
  };
  shipper.push(entry("base", 1));
  expect(shipper.drop()).toEqual([file]);
  expect(shipper.isIdle).toBe(false);
  await shipper.ship();
  expect([shipper.shipped, shipper.isIdle]).toEqual([1, true]);
  shipper.push(entry("gap", 2));
  shipper.push(entry("base", 3));
  expect(shipper.drop()).toEqual([file]);
  expect(shipper.waitingBytes).toBe(0);
  await shipper.ship();
  expect([shipper.shipped, shipper.isIdle]).toEqual([3, true]);
  const [segment, ...more] = await Array.fromAsync(segmentsIn(files));
  expect(more).toEqual([]);
  expect((await readEntries(files, segment!.path)).map(({ kind }) => kind)).toEqual(["gap"]);
  catalog.close();
  rmSync(folder, { recursive: true });
});
