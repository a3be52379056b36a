import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, startOutside, type Hosting, type Outside } from "../runtime/platform.ts";
import { deployRows, expected, matrixBindings, resultsOf } from "./matrix/matrix.ts";

/**
 * The features of objects, once for a caller in another cell, and once for an object that calls one in its own cell. The
 * rows are in matrix/rows.js. With a new release of workerd, this test shows what has changed. nodes/matrix.test.ts has
 * callers on other nodes.
 */
let hosting: Hosting;
let outside: Outside;
let bindings: Record<string, unknown>[];

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((_request, response) => response.end("from outside"));
  bindings = await matrixBindings(hosting.ready.api, hosting, outside);
  await deployRows(hosting, "rows", bindings);
});
afterAll(async () => {
  await hosting?.close(0);
  await outside?.close();
});

it("there is an expectation for each row", async () => {
  const rows = JSON.parse((await hosting.ask("rows", "/rows")).body) as string[];
  expect(rows.toSorted()).toEqual(Object.keys(expected).toSorted());
});

it.each(["cell", "object"])(
  "an object works as expected for a caller in another %s",
  async (place) => {
    expect(await resultsOf(hosting, "rows", place)).toEqual(expected);
  },
  60_000,
);

it("an object works as expected for a script in its cell", async () => {
  const { out: _, ...near } = expected; // a script that dispatches does not run there
  const kv = bindings.filter(({ name }) => name === "KV");
  await deployRows(hosting, "near", kv);
  await resultsOf(hosting, "near", "cell", ["echo"]);
  for (let i = 0; i < 100; i++) await hosting.ask("near", "/via");
  const { events } = hosting.services.objectCells;
  const before = { ...events };
  await resultsOf(hosting, "near", "cell", ["echo", "fetch"]);
  expect(events).toMatchObject({ requests: before.requests, calls: before.calls });
  expect(await resultsOf(hosting, "near", "cell", Object.keys(near))).toEqual(near);
});
