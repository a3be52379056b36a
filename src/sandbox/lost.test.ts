import { afterEach, expect, test } from "vitest";
import { CellsHarness, snippet } from "./testing.ts";

let harness: CellsHarness;
afterEach(async () => harness.close());

const echo = `export default { async fetch(request) {
  if (request.url.endsWith("/fetch")) await fetch("https://outside.example/");
  return new Response(await request.text());
} };`;

test("retries a request with a body when its cell ends, but only if the cell had read nothing of it", async () => {
  harness = new CellsHarness({ spares: 0 });
  let fetches = 0;
  // The fetch is never answered.
  harness.hooks.fetch = () => fetches++;
  await harness.listen();
  const { cells } = harness;
  harness.add(snippet("echo", echo, { profile: "script" }));
  expect((await harness.fetch("/echo/", { method: "POST", body: "first" })).text).toBe("first");
  const seen = harness.fetch("/echo/fetch", { method: "POST", body: "seen" });
  await expect.poll(() => fetches).toBe(1);
  const [pid] = cells.pids;
  process.kill(pid!, "SIGSTOP");
  const bodies = ["", "small", "x".repeat(1500)];
  const unseen = bodies.map(async (body) => harness.fetch("/echo/", { method: "POST", body }));
  const large = harness.fetch("/echo/", { method: "POST", body: "x".repeat(100_000) });
  await expect.poll(() => cells.inFlight).toBe(5);
  process.kill(pid!, "SIGKILL");
  expect((await Promise.all(unseen)).map(({ text }) => text)).toEqual(bodies);
  expect((await seen).status).toBe(500);
  expect((await large).status).toBe(500);
  expect(fetches).toBe(1);
});
