import { afterEach, describe, expect, test } from "vitest";
import type { Cell } from "./cell.ts";
import { cellDefaults } from "./settings.ts";
import { DedicatedCells } from "./dedicated.ts";
import { CellsHarness, snippet } from "./testing.ts";

const either = `export default { async fetch(request) {
  if (request.url.endsWith("/spin")) for (;;) {}
  return new Response("well");
} };`;

describe("dedicated cells", () => {
  let harness: CellsHarness;
  afterEach(async () => harness.close());

  test("pass from one request to the next without idling, also to another script's", async () => {
    harness = new CellsHarness({ dedicatedMax: 1, spares: 0, dedicatedIdleMs: 3_600_000 });
    await harness.listen();
    harness.add(snippet("one", either), snippet("two", either));
    for (const name of ["one", "two"]) expect((await harness.fetch(`/${name}/spin`)).status).toBe(500);
    const answers = await Promise.all(
      ["one", "one", "two", "one", "two", "two"].map(async (name) => harness.fetch(`/${name}/`)),
    );
    expect(answers.map(({ text }) => text)).toEqual(answers.map(() => "well"));
  });

  test("are retired for other owners and booted again as needed", async () => {
    harness = new CellsHarness({ dedicatedMax: 2, spares: 0, dedicatedIdleMs: 3_600_000 });
    await harness.listen();
    const names = ["one", "two", "three"];
    harness.add(...names.map((name) => snippet(name, either)));
    for (const name of names) expect((await harness.fetch(`/${name}/spin`)).status).toBe(500);
    for (let i = 0; i < 4; i++)
      for (const name of names) expect((await harness.fetch(`/${name}/`)).text).toBe("well");
  });

  test("leave half of them to other accounts, and evict long runs of one account", async () => {
    harness = new CellsHarness({ dedicatedMax: 4, spares: 0, patienceMs: 200, waitMs: 20_000 });
    await harness.listen();
    const sleeps = `export default { async fetch(request) {
      if (request.url.endsWith("/spin")) for (;;) {}
      if (request.url.endsWith("/sleep")) await new Promise((resolve) => setTimeout(resolve, 25_000));
      return new Response("well");
    } };`;
    const of = (owner: string) => snippet(owner, sleeps, { accountId: owner, profile: "script" });
    const names = ["one", "two", "three", "four"];
    harness.add(...names.map(of));
    for (const name of names) expect((await harness.fetch(`/${name}/spin`)).status).toBe(500);
    const sleep = async (name: string): Promise<string | null> =>
      (await harness.fetch(`/${name}/sleep`)).headers.get("x-kind");
    const asleep = names.slice(0, 3).flatMap((name) => [sleep(name), sleep(name), sleep(name)]);
    const ended = Promise.any(asleep);
    // All cells are in use by others, or ordered for them.
    expect((await harness.fetch("/four/")).text).toBe("well");
    expect(await ended).toBe("overloaded");
  });

  test("are ordered one at a time for each waiting owner, until the owner leaves quarantine", async () => {
    const orders: AbortSignal[] = [];
    const source = {
      want: (signal: AbortSignal): Promise<Cell | undefined> => {
        orders.push(signal);
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
      },
      retire: () => {},
      recordFault: () => {},
    };
    const dedicated = new DedicatedCells(source, cellDefaults);
    const waits = ["one", "one", "one", "two"].map((owner) =>
      dedicated.run(snippet(owner, either), {}, async () => {}),
    );
    expect(orders).toHaveLength(2);
    dedicated.free("one");
    expect(await Promise.all(waits.slice(0, 3))).toEqual([undefined, undefined, undefined]);
    expect(orders.map(({ aborted }) => aborted)).toEqual([true, false]);
    dedicated.free("two");
    await waits[3];
    expect(orders).toHaveLength(2);
  });
});
