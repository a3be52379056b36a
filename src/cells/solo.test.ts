import { afterEach, describe, expect, test } from "vitest";
import type { Cell } from "./cell.ts";
import { cellDefaults } from "./settings.ts";
import { SoloCells } from "./solo.ts";
import { CellsHarness, snippet } from "./testing.ts";

const either = `export default { async fetch(request) {
  if (request.url.endsWith("/spin")) for (;;) {}
  return new Response("well");
} };`;

describe("solo cells", () => {
  let harness: CellsHarness;
  afterEach(async () => harness.close());

  test("go from one request to the next, of the same script or of another, without waiting to be given up", async () => {
    harness = new CellsHarness({ soloMax: 1, spares: 0, soloIdleMs: 3_600_000 });
    await harness.listen();
    harness.add(snippet("one", either), snippet("two", either));
    for (const name of ["one", "two"]) expect((await harness.visit(`/${name}/spin`)).status).toBe(500);
    const answers = await Promise.all(
      ["one", "one", "two", "one", "two", "two"].map(async (name) => harness.visit(`/${name}/`)),
    );
    expect(answers.map(({ text }) => text)).toEqual(answers.map(() => "well"));
  });

  test("are given up for others, and taken again, as often as it comes to it", async () => {
    harness = new CellsHarness({ soloMax: 2, spares: 0, soloIdleMs: 3_600_000 });
    await harness.listen();
    const names = ["one", "two", "three"];
    harness.add(...names.map((name) => snippet(name, either)));
    for (const name of names) expect((await harness.visit(`/${name}/spin`)).status).toBe(500);
    for (let i = 0; i < 4; i++)
      for (const name of names) expect((await harness.visit(`/${name}/`)).text).toBe("well");
  });

  test("are ordered one for each owner that waits, and no longer once it is cleared", async () => {
    const orders: AbortSignal[] = [];
    const source = {
      want: (signal: AbortSignal): Promise<Cell | undefined> => {
        orders.push(signal);
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
      },
      retire: () => {},
      convict: () => {},
    };
    const solo = new SoloCells(source, cellDefaults);
    const waits = ["one", "one", "one", "two"].map((owner) =>
      solo.run(snippet(owner, either), false, async () => {}),
    );
    expect(orders).toHaveLength(2);
    solo.free("one");
    expect(await Promise.all(waits.slice(0, 3))).toEqual([undefined, undefined, undefined]);
    expect(orders.map(({ aborted }) => aborted)).toEqual([true, false]);
    solo.free("two");
    await waits[3];
    expect(orders).toHaveLength(2);
  });
});
