import { expect, it } from "vitest";
import { positionsIn, shownStack } from "./frames.ts";

const stack = `RangeError: too far
at (not a frame)
    at inner (lib/b.js:2:41)
    at async Promise.all (index 0)
    at __selvedge/entry.js:1372:57
    at forRun (__selvedge__/entry.js:245:10)
    at new Thing (file:///index.js:1:2)
    at async index.js:3:4
    at index.js:5:6
    at async Object.fetch (sandbox/worker/system.js:30:24)`;

it("finds the positions in the script's own code", () => {
  expect(positionsIn(stack).map(({ file, line, column }) => `${file} ${line} ${column}`)).toEqual([
    "lib/b.js 2 41",
    "index.js 1 2",
    "index.js 3 4",
    "index.js 5 6",
  ]);
});

it("replaces positions by their sources, and drops the platform's frames", () => {
  const original = ({ line, column }: { line: number; column: number }) =>
    line === 5 ? undefined : { file: "src/a.ts", line: line * 10, column };
  expect(shownStack(stack, original)).toBe(`RangeError: too far
at (not a frame)
    at inner (src/a.ts:20:41)
    at async Promise.all (index 0)
    at new Thing (src/a.ts:10:2)
    at async src/a.ts:30:4
    at index.js:5:6`);
});

it.each([
  "",
  "\n",
  "    at ",
  "    at (",
  "    at x (:1:1)",
  `    at ${":1".repeat(1e5)}x`,
  `    at ${"(".repeat(1e5)}`,
])("leaves other text as it is", (text) => {
  expect(shownStack(text, () => undefined)).toBe(text);
});
