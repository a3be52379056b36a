import { afterEach, expect, it, vi } from "vitest";
import { CellsHarness, snippet } from "./testing.ts";
import { mebibyte } from "../platform/bytes.ts";

let harness: CellsHarness;
afterEach(() => {
  vi.useRealTimers();
  return harness.close();
});

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

// Checks of the memory come late in a busy process, so loads must not depend on them.
it.each(["with", "without"])("stays within its memory %s checks, and loads scripts again", async (checks) => {
  if (checks === "without") vi.useFakeTimers({ toFake: ["setInterval"] });
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
  await vi.waitFor(async () => expect(await calls("s119")).not.toBe("1"));
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
  await vi.waitFor(async () => expect(await calls("other")).toBe("1"));
  expect(harness.cells.pids).toContain(before);
  answers[0]!();
  expect(await holding).toBe("201");
  await vi.waitFor(() => expect(harness.cells.pids).not.toContain(before));
});

it("unloads a snippet that has broken its channel", async () => {
  await start({ scriptsMax: 2 });
  const code = `const { set } = Uint8Array.prototype;
    let calls = 0;
    export default { async fetch({ url }) {
      Uint8Array.prototype.set = url.endsWith("break") ? () => {} : set; // the channel uses it for the answer
      return new Response(String(++calls));
    } }`;
  harness.add(snippet("breaking", code), ...["a", "b"].map(counter));
  const { status, text } = await harness.fetch("/breaking/break");
  expect([status, text]).toEqual([500, "the snippet's isolate closed the channel"]);
  expect(await calls("breaking")).toBe("2");
  await vi.waitFor(async () => {
    await calls("a");
    await calls("b");
    expect(await calls("breaking")).toBe("1");
  });
});

it("unloads a script whose visitor left before the answer", async () => {
  await start({ scriptsMax: 2 });
  const held: string[] = [];
  harness.hooks = { fetch: ({ href }) => void held.push(href) };
  const code = `let calls = 0;
    export default { async fetch({ url }) {
      calls++;
      return url.endsWith("hold") ? fetch("https://site.example/") : new Response(String(calls));
    } }`;
  harness.add(snippet("left", code, { profile: "script" }), ...["a", "b"].map(counter));
  const leaving = new AbortController();
  const first = harness.fetch("/left/hold", { signal: leaving.signal });
  first.catch(() => {});
  await vi.waitFor(() => expect(held).toHaveLength(1));
  leaving.abort();
  await vi.waitFor(async () => {
    await calls("a");
    await calls("b");
    expect(await calls("left")).toBe("1");
  });
});

it("does not count the fetches of runs whose visitors left", async () => {
  await start({});
  let held = 0;
  const pairs = new Map<string, () => void>();
  harness.hooks = {
    fetch({ pathname }, _request, response) {
      if (pathname === "/hold") held++;
      else if (pairs.has(pathname)) {
        pairs.get(pathname)!();
        response.end();
      } else pairs.set(pathname, () => response.end());
    },
  };
  const code = `export default { async fetch({ url }) {
      const path = url.endsWith("hold") ? "hold" : crypto.randomUUID();
      const fetches = Array.from({ length: path === "hold" ? 6 : 2 }, () => fetch("https://site.example/" + path));
      await Promise.all(fetches);
      return new Response("both");
    } }`;
  harness.add(snippet("left", code, { profile: "script" }));
  const leaving = new AbortController();
  for (let i = 0; i < 43; i++) harness.fetch("/left/hold", { signal: leaving.signal }).catch(() => {});
  await vi.waitFor(() => expect(held).toBe(256));
  leaving.abort();
  await vi.waitFor(async () => {
    const { text } = await harness.fetch("/left/both", { signal: AbortSignal.timeout(500) });
    expect(text).toBe("both");
  });
});
