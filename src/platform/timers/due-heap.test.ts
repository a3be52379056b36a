import { expect, it } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { DueHeap } from "./due-heap.ts";

it("items are taken in the order of their due times, and none before its time", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1000)), fc.nat(1000), (dues, now) => {
      const heap = new DueHeap<number>();
      for (const due of dues) heap.push(due, due);
      const sorted = dues.toSorted((a, b) => a - b);
      const due = sorted.filter((each) => each <= now);
      expect(heap.take(now, 10)).toEqual(due.slice(0, 10));
      expect(heap.take(now, Infinity)).toEqual(due.slice(10));
      expect(heap.take(Infinity, Infinity)).toEqual(sorted.slice(due.length));
    }),
  );
});
