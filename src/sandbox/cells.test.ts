import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { CellsHarness, snippet } from "./testing.ts";

const harness = new CellsHarness({ spares: 2 });
beforeAll(async () => {
  await harness.listen();
  harness.add(
    snippet(
      "hello",
      `export default { async fetch(request) { return new Response("hello " + request.url) } }`,
    ),
    snippet("spin", `export default { async fetch() { for (;;) {} } }`),
    snippet(
      "hog",
      `export default { async fetch() { const all = []; for (;;) all.push(new Array(1000).fill(Math.random())); } }`,
    ),
    snippet(
      "buffers",
      `export default { async fetch() { const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1)); } }`,
      { cpuMs: 500 },
    ),
    snippet("throw", `export default { async fetch() { throw new TypeError("no good") } }`),
    snippet("broken", `export default { fetch( }`),
    snippet(
      "through",
      `export default { async fetch(request) { const r = await fetch(request); const o = new Response(r.body, r); o.headers.set("x-by", "snippet"); return o } }`,
    ),
    snippet("echo", `export default { async fetch(request) { return new Response(request.body) } }`),
    snippet(
      "looks",
      `export default { async fetch(request) { return Response.json({ cf: request.cf, headers: [...request.headers], redirect: request.redirect }) } }`,
    ),
    snippet(
      "absent",
      `export default { async fetch(request, ...rest) { const names = ["caches","Cache","CacheStorage","WebSocketPair","WebSocket","HTMLRewriter","EventSource","addEventListener","removeEventListener","dispatchEvent"];
        const proto = Object.getPrototypeOf(globalThis);
        let evil; try { evil = new Function("return 1")() } catch (e) { evil = e.name }
        return Response.json({ there: names.filter((n) => typeof globalThis[n] !== "undefined" || (proto && typeof proto[n] !== "undefined")), rest: rest.length, evil }) } }`,
    ),
  );
});
afterAll(() => harness.close());

it("runs a script, which sees the visitor's URL", async () => {
  expect(await harness.fetch("/hello/a?b=c")).toMatchObject({
    status: 200,
    text: "hello https://site.example/a?b=c",
  });
});

it("gives a script the request only, without headers between gateway and cell", async () => {
  expect(JSON.parse((await harness.fetch("/looks/")).text)).toEqual({
    cf: { colo: "TST" },
    headers: [["host", "site.example"]],
    redirect: "manual",
  });
});

it("removes globals that snippets do not have", async () => {
  expect(JSON.parse((await harness.fetch("/absent/")).text)).toEqual({
    there: [],
    rest: 0,
    evil: "EvalError",
  });
});

it("sends a script's fetches to the gateway", async () => {
  const answer = await harness.fetch("/through/x");
  expect(answer.text).toBe("origin of https://site.example/x");
  expect(answer.headers.get("x-by")).toBe("snippet");
});

it("streams a large body through", async () => {
  const size = 20_000_000;
  const answer = await harness.fetch("/echo/", { method: "POST", body: new Uint8Array(size).fill(65) });
  expect(answer.text.length).toBe(size);
});

it("reports a script's exception, and why a script cannot be loaded", async () => {
  const thrown = await harness.fetch("/throw/");
  expect([thrown.status, thrown.headers.get("x-kind"), thrown.text]).toEqual([500, "exception", "no good"]);
  const broken = await harness.fetch("/broken/");
  expect(broken.headers.get("x-kind")).toBe("exception");
  expect(broken.text).toMatch(/SyntaxError/);
});

it.each([
  ["spin", "cpu"],
  ["hog", "memory"],
  ["buffers", "memory"],
])("ends %s with a %s error, and no other script notices", async (name, kind) => {
  const stop = new AbortController();
  const statuses = new Map<number, number>();
  const innocent = (async () => {
    while (!stop.signal.aborted) {
      const { status } = await harness.fetch("/hello/");
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  })();
  for (let i = 0; i < 3; i++) {
    const answer = await harness.fetch(`/${name}/`);
    expect([answer.status, answer.headers.get("x-kind")]).toEqual([500, kind]);
  }
  stop.abort();
  await innocent;
  expect([...statuses.keys()]).toEqual([200]);
});

it("goes on when a cell is killed from outside", async () => {
  await harness.fetch("/hello/");
  for (const pid of harness.cells.pids) process.kill(pid, "SIGKILL");
  expect((await harness.fetch("/hello/")).status).toBe(200);
  await vi.waitFor(() => expect(harness.cells.counts).toEqual({ shared: 1, all: 3 }));
});
