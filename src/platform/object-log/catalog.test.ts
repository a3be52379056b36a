import { expect, it } from "vitest";
import { Catalog, contentsOf } from "./catalog.ts";
import type { Entry } from "./segment.ts";

const namespace = "a".repeat(32);
const entry = (name: string, kind: Entry["kind"], stamp: string): Entry => ({
  ...{ namespace, name, kind, stamp, bytes: Buffer.alloc(0) },
  ...(kind === "base" && { start: stamp }),
});

it("a log that is read again tells the files that end differently, and which of them were deleted", () => {
  const catalog = new Catalog(":memory:");
  const add = (number: number, entries: Entry[]): void =>
    catalog.add({ number, path: `${number}`, stamp: entries.at(-1)!.stamp }, contentsOf(entries));
  const first = ["same", "written", "deleted"].map((name, at) => entry(name, "base", `1${at}`));
  add(1, first);
  add(2, [entry("written", "frames", "20"), entry("deleted", "gone", "21")]);
  add(3, [entry("short", "base", "30"), entry("short", "gone", "31")]);
  catalog.beginAgain();
  add(1, first);
  expect(catalog.endAgain()).toEqual([
    { namespace, name: "deleted", isGone: true },
    { namespace, name: "written", isGone: false },
  ]);
  // Until it is added again, also while the log is read once more.
  const deleted = [{ namespace, name: "deleted" }];
  expect(catalog.lostDeletions()).toEqual(deleted);
  catalog.beginAgain();
  add(1, first);
  expect([catalog.endAgain(), catalog.lostDeletions()]).toEqual([[], deleted]);
  add(2, [entry("deleted", "gone", "40")]);
  expect(catalog.lostDeletions()).toEqual([]);
  catalog.close();
});
