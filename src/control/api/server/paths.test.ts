import { fc } from "../../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { orderOfPath } from "./paths.ts";

const comparePaths = (a: string, b: string): number => {
  const [left, right] = [orderOfPath(a), orderOfPath(b)];
  return left < right ? -1 : Number(left > right);
};

const segment = fc.constantFrom("a", "b", "c", "{x}", "{y}");
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join("/")}`);

it("is a total order, independent of the order of declaration", () => {
  fc.assert(
    fc.property(path, path, path, (a, b, c) => {
      expect(Math.sign(comparePaths(a, b)) + Math.sign(comparePaths(b, a))).toBe(0);
      if (comparePaths(a, b) <= 0 && comparePaths(b, c) <= 0)
        expect(comparePaths(a, c)).toBeLessThanOrEqual(0);
    }),
    { numRuns: 5000 },
  );
  fc.assert(
    fc.property(fc.uniqueArray(path), fc.func(fc.integer()), (paths, key) => {
      const shape = (one: string): string => one.replaceAll(/\{\w\}/g, "{}");
      const shuffled = paths.toSorted((a, b) => key(a) - key(b));
      expect(shuffled.toSorted(comparePaths).map(shape)).toEqual(paths.toSorted(comparePaths).map(shape));
    }),
  );
});

it("puts fixed text before parameters, and a path before those below it", () => {
  const ordered = ["/a", "/a/b", "/a/bc", "/a/{x}", "/a/{x}/b", "/b", "/{x}", "/{x}/b"];
  expect(ordered.toReversed().toSorted(comparePaths)).toEqual(ordered);
});
