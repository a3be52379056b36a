import { expect, it } from "vitest";
import { PartBuffers } from "./part-buffers.ts";

it("limits the buffers in use, grants them in order, and frees those of failed uploads", async () => {
  const buffers = new PartBuffers(2, 16);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const used = new Set<Buffer>();
  const parts = [0, 1, 2, 3, 4].map((part) =>
    buffers.with(async (buffer) => {
      expect(used.has(buffer)).toBe(false);
      used.add(buffer);
      begun.push(part);
      await new Promise<void>((resolve) => ends.push(resolve));
      used.delete(buffer);
      if (part === 1) throw new Error("on purpose");
      return part;
    }),
  );
  const settled = Promise.allSettled(parts);
  for (let part = 0; part < 5; part++) {
    await expect.poll(() => begun.length).toBe(Math.min(part + 2, 5));
    expect(used.size).toBe(Math.min(2, 5 - part));
    ends[part]!();
    await expect.poll(() => used.size).toBe(Math.min(2, 4 - part));
  }
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  expect((await settled).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
    "fulfilled",
  ]);
});
