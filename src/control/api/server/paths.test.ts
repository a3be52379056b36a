import { fc } from "../../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { comparePaths } from "./paths.ts";

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
