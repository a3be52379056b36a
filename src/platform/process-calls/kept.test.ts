import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Kept } from "./kept.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("things are found as long as something holds them, however many there are, and no longer", async () => {
  const kept = new Kept<object>();
  let things: object[] = Array.from({ length: 50_000 }, () => ({}));
  const names = things.map((thing) => kept.nameOf(thing));
  collect();
  expect(names.findIndex((name, at) => kept.find(name) !== things[at])).toBe(-1);
  expect(kept.nameOf(things[0]!)).toBe(names[0]);
  things = [];
  await expect
    .poll(() => {
      collect();
      return kept.size;
    })
    .toBe(0);
  expect(kept.find(names[0]!)).toBe(undefined);
});
