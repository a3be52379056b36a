import { afterEach, expect, test } from "vitest";
import { CellsHarness, snippet } from "./testing.ts";

let harness: CellsHarness;
afterEach(async () => harness.close());

test("a load continues for all waiting requests when the first of them leaves", async () => {
  harness = new CellsHarness();
  await harness.listen();
  const code = `import data from "./data.bin"; export default { fetch: () => new Response("well") };`;
  for (let i = 0; i < 8; i++) {
    const name = `large-${i}`;
    const script = snippet(name, code, { profile: "script" });
    const data = { name: "data.bin", kind: "data", content: new Uint8Array(2_000_000) } as const;
    harness.add({ ...script, modules: [...script.modules, data] });
    const { cells } = harness;
    const leaving = new AbortController();
    const first = harness.fetch(`/${name}/`, { signal: leaving.signal });
    first.catch(() => {});
    await expect.poll(() => cells.inFlight, { interval: 1 }).toBe(1);
    const others = [1, 2, 3].map(async () => harness.fetch(`/${name}/`));
    await expect.poll(() => cells.inFlight, { interval: 1 }).toBe(4);
    leaving.abort();
    expect((await Promise.all(others)).map(({ text }) => text)).toEqual(["well", "well", "well"]);
  }
});
