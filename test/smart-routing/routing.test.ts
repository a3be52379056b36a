import { createServer, request, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startLink, type Way } from "../helpers/links.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/** Smart routing over real connections: origins at several loopback addresses, some behind slow links. */
let server: TestServer;
let zoneId: string;
const closing: (() => void)[] = [];
const host = "www.smart.example";

beforeEach(async () => {
  server = await startTestServer();
  zoneId = (await server.call("POST", "/zones", { name: "smart.example" })).body.result.id as string;
  closing.push(() => void server.close(0));
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Starts an origin on the address, at a free port. */
async function origin(address: string, port: number, listener: RequestListener): Promise<number> {
  const made = createServer(listener);
  await new Promise<void>((resolve) => made.listen(port, address, resolve));
  closing.push(() => {
    made.closeAllConnections();
    made.close();
  });
  return (made.address() as AddressInfo).port;
}

/** Starts a link on `address` to an origin, which delays every byte by `way.ms` in each direction. */
async function link(
  address: string,
  port: number,
  to: { host: string; port: number },
  way: Way,
): Promise<void> {
  const made = await startLink({ host: address, port }, to, () => way);
  closing.push(() => void made.close());
}

async function point(addresses: readonly string[], port: number, smart = true): Promise<void> {
  for (const content of addresses)
    await server.call("POST", `/zones/${zoneId}/dns_records`, {
      type: "A",
      name: "www",
      content,
      proxied: true,
    });
  await server.call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
  if (smart) await server.call("PATCH", `/zones/${zoneId}/edge/smart_routing`, { value: "on" });
}
const get = (path = "/"): ReturnType<typeof requestEdge> => requestEdge(server.ready.edge, host, path);
const analytics = async () =>
  (await server.call("GET", `/zones/${zoneId}/edge/smart_routing/analytics`)).body.result;
const seen: Record<string, number> = {};
const counting =
  (name: string): RequestListener =>
  (_request, response) => {
    seen[name] = (seen[name] ?? 0) + 1;
    response.end(name);
  };
beforeEach(() => Object.keys(seen).forEach((name) => delete seen[name]));

it("uses the fastest address when enabled, and the first one when disabled", async () => {
  const port = await origin("127.0.0.11", 0, counting("far"));
  await origin("127.0.0.13", port, counting("near"));
  await link("127.0.0.12", port, { host: "127.0.0.11", port }, { ms: 60 });
  await point(["127.0.0.12", "127.0.0.13"], port, false);
  for (let i = 0; i < 10; i++) await get();
  expect(seen).toEqual({ far: 10 });
  await server.call("PATCH", `/zones/${zoneId}/argo/smart_routing`, { value: "on" });
  for (let i = 0; i < 100; i++) await get();
  expect(seen["near"]).toBeGreaterThan(60);
  const result = await analytics();
  expect(result.smart.requests + result.direct.requests).toBe(100);
  expect(result.p50_ratio).toBeNull();
  expect(result.paths).toMatchObject([
    { path: "127.0.0.12", current: false, ejected: false },
    { path: "127.0.0.13", current: true, ejected: false },
  ]);
});

it("leaves an address that becomes slow", async () => {
  const way = { ms: 0 };
  const port = await origin("127.0.0.21", 0, counting("a"));
  await link("127.0.0.22", port, { host: "127.0.0.21", port }, way);
  await origin("127.0.0.24", port, counting("b"));
  await link("127.0.0.23", port, { host: "127.0.0.24", port }, { ms: 40 });
  await point(["127.0.0.22", "127.0.0.23"], port);
  for (let i = 0; i < 30; i++) await get();
  expect(seen["a"]).toBeGreaterThan(20);
  way.ms = 200;
  for (let i = 0; i < 6; i++) await get();
  seen["b"] = 0;
  for (let i = 0; i < 20; i++) await get();
  expect(seen["b"]).toBeGreaterThan(12);
});

it("never sends a request with a body twice, even if it fails", async () => {
  const bodies: string[] = [];
  const port = await origin("127.0.0.31", 0, (request) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      bodies.push(text);
      request.socket.destroy();
    });
  });
  await origin("127.0.0.32", port, (request, response) => {
    if (request.method === "POST") bodies.push("at the other");
    request.resume().on("end", () => response.end("ok"));
  });
  await point(["127.0.0.31", "127.0.0.32"], port);
  const statuses = await Promise.all(Array.from({ length: 20 }, (_, i) => post(`body ${i}`)));
  expect(bodies.length).toBe(20);
  const atTheFirst = bodies.filter((text) => text !== "at the other");
  expect(new Set(atTheFirst).size).toBe(atTheFirst.length);
  expect(statuses.every((status) => status === 200 || status === 520)).toBe(true);
});

async function post(body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      server.ready.edge,
      { method: "POST", headers: { host }, agent: false },
      (response) => {
        response.resume().on("end", () => resolve(response.statusCode!));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

it("uses the next address when one is down, and excludes that one", async () => {
  const port = await origin("127.0.0.42", 0, counting("up"));
  await point(["127.0.0.41", "127.0.0.42"], port);
  for (let i = 0; i < 30; i++) expect((await get()).status).toBe(200);
  expect((await analytics()).paths[0]).toMatchObject({ path: "127.0.0.41", current: false });
  expect((await analytics()).failed_requests).toBe(0);
});

it("hedges a request that is slower than usual, within a budget", async () => {
  let isStuck = false;
  const answers = (name: string): RequestListener => {
    return (request, response) => {
      seen[name] = (seen[name] ?? 0) + 1;
      if (isStuck && request.url === "/stuck" && name === "a") return; // never responds
      response.end(name);
    };
  };
  const port = await origin("127.0.0.51", 0, answers("a"));
  await origin("127.0.0.54", port, answers("b"));
  await link("127.0.0.52", port, { host: "127.0.0.54", port }, { ms: 10 });
  await point(["127.0.0.51", "127.0.0.52"], port);
  for (let i = 0; i < 100; i++) await get();
  isStuck = true;
  // On a busy machine a request may have been slow before.
  const before = (await analytics()).hedged_requests as number;
  let hedged = before;
  for (let i = 0; i < 10 && hedged === before; i++) {
    // A request of the control group is not hedged, and waits.
    const answer = await Promise.race([get("/stuck"), delay(2000)]);
    if (answer !== undefined) expect(answer).toMatchObject({ status: 200, body: "b" });
    hedged = (await analytics()).hedged_requests as number;
  }
  expect(hedged).toBeGreaterThan(before);
  expect(hedged).toBeLessThanOrEqual(5);
});
