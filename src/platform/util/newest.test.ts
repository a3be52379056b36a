import { expect, it } from "vitest";
import { Newest } from "./newest.ts";

it("keeps the newest values, in the order in which they were added", () => {
  const newest = new Newest<number>(3);
  for (let i = 0; i < 10; i++) {
    newest.add(`key ${i}`, i);
    const kept = Array.from({ length: 10 }, (_, k) => newest.get(`key ${k}`));
    expect(kept).toEqual(Array.from({ length: 10 }, (_, k) => (k <= i && k > i - 3 ? k : undefined)));
  }
});
