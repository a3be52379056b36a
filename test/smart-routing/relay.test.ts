import { createServer, request, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startLink, type Link, type Way } from "../helpers/links.ts";
import { serve, type ServerProcess } from "../helpers/process.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/**
 * Two nodes as processes, an origin that is far from one node and near the other, and links with latency
 * between them. The nodes connect from different addresses, so that the same origin is slow for one node
 * only.
 */
const host = "www.relay.example";
const token = "owner-token-of-the-relay-test";
const originAddress = "127.0.5.1";
const edgeAddress = "127.0.5.2";
const relayAddress = "127.0.5.3";
const farMs = 60;
const nearMs = 5;
let [edge, relay]: ServerProcess[] = [];
let origin: Server;
let links: Link[];
let zoneId: string;
let way: (client: string) => Way = (client) => ({ ms: client === relayAddress ? nearMs : farMs });
/** Counts of the parts of requests and answers on the link to the origin, by the address of the node. */
const carried: Record<string, number> = {};
const bodies: string[] = [];
const answer: RequestListener = (incoming, response) => {
  let body = "";
  incoming.on("data", (chunk: Buffer) => (body += chunk.toString()));
  incoming.on("end", () => {
    if (incoming.method === "POST") bodies.push(body);
    response.setHeader("x-seen-host", incoming.headers.host!);
    response.end(JSON.stringify(incoming.headers));
  });
};

async function call(method: string, path: string, body?: unknown) {
  const response = await fetch(`${edge!.ready.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const envelope = (await response.json()) as { success: boolean; result: never; errors: unknown };
  if (!envelope.success) throw new Error(JSON.stringify(envelope.errors));
  // oxlint-disable-next-line typescript/no-explicit-any
  return envelope.result as any;
}
const analytics = async () => call("GET", `/zones/${zoneId}/edge/smart_routing/analytics`);
const pathNamed = async (name: string) =>
  (
    (await analytics()).paths as { path: string; current: boolean; requests: number; failures: number }[]
  ).find((each) => each.path === name)!;

beforeAll(async () => {
  origin = createServer(answer);
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port } = origin.address() as AddressInfo;
  const toOrigin = await startLink(
    { host: originAddress, port: 0 },
    { host: "127.0.0.1", port },
    (client) => {
      carried[client] = (carried[client] ?? 0) + 1;
      return way(client);
    },
  );
  const common = ["--ephemeral", "--relay-secret", "a secret of two nodes", "--log-level", "warn"];
  relay = await serve([
    ...common,
    "--edge-tls-listen",
    "127.0.0.1:0",
    "--origin-source-address",
    relayAddress,
  ]);
  const toRelay = await startLink(
    { host: "127.0.0.1", port: 0 },
    { host: "127.0.0.1", port: Number(new URL(relay.ready.edge_tls!).port) },
    () => ({ ms: nearMs }),
  );
  links = [toOrigin, toRelay];
  edge = await serve(
    [
      ...common,
      "--relays",
      `r1=https://127.0.0.1:${toRelay.port}`,
      "--origin-ca",
      relay.ready.tls_authority!,
      "--origin-source-address",
      edgeAddress,
    ],
    { SELVEDGE_API_TOKEN: token },
  );
  zoneId = (await call("POST", "/zones", { name: "relay.example" })).id;
  const record = { type: "A", name: "www", content: originAddress, proxied: true };
  await call("POST", `/zones/${zoneId}/dns_records`, record);
  await call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: toOrigin.port } } }],
  });
  await call("PATCH", `/zones/${zoneId}/edge/smart_routing`, { value: "on" });
});
afterAll(async () => {
  for (const node of [edge, relay]) {
    node?.process.kill("SIGKILL");
    await node?.exited;
  }
  for (const link of links ?? []) await link.close();
  origin?.close();
});

const get = async (path = "/"): Promise<{ status: number; body: string }> =>
  requestEdge(edge!.ready.edge, host, path);

it("requests go through the node nearer to the origin, unchanged", async () => {
  let [requests, body] = [0, ""];
  const round = async (): Promise<void> => {
    for (const address of [edgeAddress, relayAddress]) carried[address] = 0;
    for (let i = 0; i < 20; i++, requests++) {
      const answered = await get();
      expect(answered.status).toBe(200);
      ({ body } = answered);
    }
  };
  await round();
  // If the machine stops for a moment, the near path was slow too, and another one is right for a while.
  await vi.waitFor(async () => {
    await round();
    expect(await pathNamed(`r1>${originAddress}`)).toMatchObject({ current: true, failures: 0 });
    expect(carried[relayAddress]).toBeGreaterThan(carried[edgeAddress]!);
  });
  const headers = JSON.parse(body) as Record<string, string>;
  expect(headers).toMatchObject({ host, "cf-connecting-ip": "127.0.0.1", "x-forwarded-for": "127.0.0.1" });
  expect(Object.keys(headers).filter((name) => name.startsWith("selvedge-"))).toEqual([]);
  const { smart, direct } = await analytics();
  expect(smart.requests + direct.requests).toBe(requests);
});

const post = async (body: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = { method: "POST", headers: { host, "content-type": "text/plain" }, agent: false };
    const outgoing = request(edge!.ready.edge, options, (response) =>
      response.resume().on("end", () => resolve(response.statusCode!)),
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });

it("bodies go through it completely and once", async () => {
  const large = "x".repeat(300_000);
  bodies.length = 0;
  for (let i = 0; i < 5; i++) expect(await post(`${i} ${large}`)).toBe(200);
  expect(bodies).toEqual(Array.from({ length: 5 }, (_, i) => `${i} ${large}`));
});

it("a body is never sent partially or twice when the relay cannot connect", async () => {
  bodies.length = 0;
  // From here on the relay reaches no origin; the edge does.
  const [toOrigin] = links as [Link];
  const { port } = origin.address() as AddressInfo;
  await toOrigin.close();
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push(await post(`lost ${i}`));
  expect(statuses.every((status) => status >= 500)).toBe(true);
  links[0] = await startLink(
    { host: originAddress, port: toOrigin.port },
    { host: "127.0.0.1", port },
    (client) => way(client),
  );
  for (let i = 0; i < 4; i++) statuses.push(await post(`sent ${i}`));
  expect(bodies.every((body) => /^sent \d$/.test(body))).toBe(true);
  expect(new Set(bodies).size).toBe(bodies.length);
});

it("visitors notice nothing when a relay dies", async () => {
  way = () => ({ ms: nearMs });
  relay!.process.kill("SIGKILL");
  await relay!.exited;
  for (let i = 0; i < 30; i++) expect((await get()).status).toBe(200);
  expect((await pathNamed(originAddress)).current).toBe(true);
});

it("the log reports a relay that does not respond", async () => {
  await expect.poll(() => edge!.stdout() + edge!.stderr()).toContain("a relay does not respond");
});

it("a node relays nothing without the secret", async () => {
  const headers = { "selvedge-relay-target": `${Math.floor(Date.now() / 1000)},127.0.0.1,80,http,,AAAA` };
  expect((await requestEdge(edge!.ready.edge, "relay.selvedge.internal", "/", headers)).status).toBe(403);
});
