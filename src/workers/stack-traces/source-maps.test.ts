import { afterEach, expect, it, vi } from "vitest";
import { segmentsMax } from "./source-map.ts";
import { SourceMaps } from "./source-maps.ts";

const stack = "Error: x\n    at f (index.js:1:1)";
const mapped = "Error: x\n    at f (index.ts:1:1)";
const mapOf = (more: object = {}) => [
  {
    module: "index.js",
    content: Buffer.from(
      JSON.stringify({ version: 3, sources: ["index.ts"], names: [], mappings: "AAAA", ...more }),
    ),
  },
];
const open: SourceMaps[] = [];
const sourceMaps = (load: (id: string) => Promise<ReturnType<typeof mapOf>>): SourceMaps => {
  const made = new SourceMaps(load, 60_000);
  open.push(made);
  return made;
};
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

it("loads a map when a stack is shown, and caches its results", async () => {
  const load = vi.fn(async () => mapOf());
  const maps = sourceMaps(load);
  expect(await maps.shown(undefined, [stack])).toEqual([stack]);
  expect([load.mock.calls.length, maps.isBusy]).toEqual([0, false]);
  expect(await maps.shown("code", [stack, stack])).toEqual([mapped, mapped]);
  await maps.close();
  // The thread has ended, but its results are cached.
  expect(await maps.shown("code", [stack])).toEqual([mapped]);
  expect(load).toHaveBeenCalledTimes(1);
});

it.each([
  ["too large", async () => mapOf({ mappings: ",".repeat(segmentsMax) })],
  ["invalid", async () => [{ module: "index.js", content: Buffer.from("\0") }]],
  ["of another module", async () => [{ ...mapOf()[0]!, module: "other.js" }]],
  [
    "not available",
    async () => {
      throw new Error("the database is away");
    },
  ],
])("a map that is %s leaves the stack unmapped", async (_what, load) => {
  expect(await sourceMaps(load).shown("code", [stack])).toEqual([stack]);
});

it("maps of much code in turn stay inside the thread's memory", async () => {
  const mappings = `AAAA${",AAAA".repeat(segmentsMax - 2)}`;
  const maps = sourceMaps(async () => mapOf({ mappings }));
  for (let i = 0; i < 6; i++) expect(await maps.shown(`code ${i}`, [stack])).toEqual([mapped]);
});

it("stacks above the maximum number of waiting ones are shown unmapped", async () => {
  const maps = sourceMaps(async () => mapOf());
  const all = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => maps.shown(`code ${i}`, [stack])),
  );
  const count = all.filter(([first]) => first === mapped).length;
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThan(200);
});
