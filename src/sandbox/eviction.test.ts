import { afterEach, expect, it, vi } from "vitest";
import { CellsHarness, snippet } from "./testing.ts";
import { mebibyte } from "../platform/bytes.ts";

let harness: CellsHarness;
afterEach(() => harness.close());

/** A script with a module of its own that returns the number of its calls since it was loaded. */
const counter = (name: string): ReturnType<typeof snippet> =>
  snippet(
    name,
    `let calls = 0; const held = new Uint8Array(4e6).fill(1);
     export default { async fetch() { return new Response(String(++calls + held.length - 4e6)) } }`,
  );

async function start(settings: ConstructorParameters<typeof CellsHarness>[0]): Promise<void> {
  harness = new CellsHarness({ spares: 0, ...settings });
  await harness.listen();
}
const calls = async (name: string): Promise<string> => (await harness.fetch(`/${name}/`)).text;

it("unloads the least recently used script when a cell has too many", async () => {
  await start({ scriptsMax: 3 });
  const names = ["a", "b", "c", "d"];
  harness.add(...names.map(counter));
  for (const name of ["a", "b", "c", "a", "b", "c", "a"]) await calls(name);
  expect(await calls("d")).toBe("1");
  // The least recently used script was unloaded, so its count starts again; the others go on.
  await vi.waitFor(async () => expect([await calls("a"), await calls("c")]).not.toContain("1"));
  expect(await calls("b")).toBe("1");
});

it("lets an unloaded script finish its requests", async () => {
  await start({ scriptsMax: 2 });
  const answers: (() => void)[] = [];
  harness.hooks = { fetch: (_url, _request, response) => void answers.push(() => response.end("end")) };
  const streaming = `let calls = 0;
    export default { async fetch() {
      const { readable, writable } = new TransformStream();
      const writer = writable.getWriter();
      (async () => {
        await writer.write(new TextEncoder().encode(String(++calls)));
        await writer.write(await (await fetch("https://site.example/")).bytes());
        await writer.close();
      })();
      return new Response(readable);
    } }`;
  harness.add(snippet("streaming", streaming, { profile: "script" }), ...["a", "b", "c"].map(counter));
  const first = harness.fetch("/streaming/");
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  for (const name of ["a", "b", "c", "a", "b", "c"]) await calls(name);
  const second = harness.fetch("/streaming/");
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  for (const answer of answers) answer();
  expect([(await first).text, (await second).text]).toEqual(["1end", "1end"]);
});

it("stays within its memory by unloading scripts, and loads them again on demand", async () => {
  const bytesMax = 256 * mebibyte;
  await start({ cellBytesMax: bytesMax, spares: 1 });
  // Together they would take 120 times 6 MB.
  const names = Array.from({ length: 120 }, (_, i) => `s${i}`);
  harness.add(...names.map(counter));
  const resident: number[] = [];
  for (const name of names) {
    expect(await calls(name)).toBe("1");
    resident.push(...harness.cells.processes.map((each) => each.rssBytes()));
  }
  expect(Math.max(...resident)).toBeGreaterThan(bytesMax / 2);
  // Allowance for requests that arrive while another cell boots.
  expect(Math.max(...resident)).toBeLessThan(bytesMax * 1.2);
  await vi.waitFor(async () => expect(await calls("s119")).not.toBe("1"), { timeout: 10_000 });
  expect(await calls("s0")).toBe("1");
});

it("is replaced when unloading does not free enough memory, and finishes its runs", async () => {
  await start({ cellBytesMax: 100 * mebibyte, lingerMs: 100 });
  const answers: (() => void)[] = [];
  harness.hooks = { fetch: (_url, _request, response) => void answers.push(() => response.end("held")) };
  const holder = `export default { async fetch(request) { const held = new Uint8Array(6e7).fill(1); const { status } = await fetch(request); return new Response(String(status + held[0])) } }`;
  const mayHold = { memoryBytes: 200 * mebibyte, cpuMs: 500 };
  harness.add(snippet("holder", holder, mayHold), { ...counter("other"), ...mayHold });
  expect([await calls("other"), await calls("other")]).toEqual(["1", "2"]);
  const holding = calls("holder");
  const [before] = harness.cells.pids;
  // All other scripts go on in another cell.
  await vi.waitFor(async () => expect(await calls("other")).toBe("1"), { timeout: 10_000 });
  expect(harness.cells.pids).toContain(before);
  answers[0]!();
  expect(await holding).toBe("201");
  await vi.waitFor(() => expect(harness.cells.pids).not.toContain(before), { timeout: 10_000 });
});
