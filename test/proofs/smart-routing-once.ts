import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { api, startSelvedge } from "../../bench/lib/child.ts";
import { startLink } from "../helpers/links.ts";

/**
 * POSTs through two nodes to an origin that answers, hangs up before, within and after a body, is slow, or says 503, over links
 * that come and go: each body arrives whole, and at most once. `node test/proofs/smart-routing-once.ts --posts 5000`
 */
const { values } = parseArgs({ options: { posts: { type: "string", default: "5000" } } });
const posts = Number(values.posts);
const host = "www.once.example";
const addresses = ["127.0.7.1", "127.0.7.2"];
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const arrived = new Map<string, number>();
let torn = 0;
const origin = createServer((incoming, response) => {
  if (incoming.method !== "POST") {
    response.end("ok");
    return;
  }
  const fate = Math.random();
  if (fate < 0.1) {
    incoming.socket.destroy(); // nothing has been read
    return;
  }
  let body = "";
  incoming.on("data", (chunk: Buffer) => {
    body += chunk.toString();
    if (fate < 0.2 && body.length > 1000) incoming.socket.destroy();
  });
  incoming.on("end", () => {
    const [id = "", length] = body.split(" ", 2);
    if (Number(length) !== body.length) torn += 1;
    arrived.set(id, (arrived.get(id) ?? 0) + 1);
    if (fate < 0.3) incoming.socket.destroy();
    else if (fate < 0.4) response.writeHead(503).end();
    else setTimeout(() => response.end("taken"), fate < 0.5 ? 300 : 0);
  });
});
await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
const to = { host: "127.0.0.1", port: (origin.address() as AddressInfo).port };

const way = (): { ms: number } => ({ ms: Math.random() < 0.05 ? 100 : 2 });
const links = [await startLink({ host: addresses[0]!, port: 0 }, to, way)];
const { port } = links[0]!;
links.push(await startLink({ host: addresses[1]!, port }, to, way));
const relay = await startSelvedge(["--relay-secret", "a secret"]);
const edge = await startSelvedge(["--relay-secret", "a secret", "--relays", `r1=${relay.ready.edge}`]);
const call = <T>(method: string, path: string, body?: unknown): Promise<T> =>
  api(edge.ready, method, path, body);
const { id: zoneId } = await call<{ id: string }>("POST", "/zones", { name: "once.example" });
for (const content of addresses)
  await call("POST", `/zones/${zoneId}/dns_records`, { type: "A", name: "www", content, proxied: true });
await call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
  rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
});
await call("PATCH", `/zones/${zoneId}/edge/smart_routing`, { value: "on" });

const send = (method: string, body?: string): Promise<number> =>
  new Promise((resolve) => {
    const outgoing = request(edge.ready.edge, { method, headers: { host }, agent: false }, (response) => {
      response.resume().on("close", () => resolve(response.statusCode!));
    });
    outgoing.on("error", () => resolve(0));
    outgoing.end(body);
  });

// Links come and go while requests are in flight.
const state = { isDone: false };
const breaking = (async () => {
  for (let i = 0; !state.isDone; i++) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    const which = i % addresses.length;
    await links[which]!.close();
    await new Promise((resolve) => setTimeout(resolve, 100));
    links[which] = await startLink({ host: addresses[which]!, port }, to, way);
  }
})();
const answers = new Map<number, number>();
let next = 0;
await Promise.all(
  Array.from({ length: 24 }, async () => {
    while (next < posts) {
      const id = `body-${next++}`;
      const size = Math.random() < 0.2 ? 200_000 : 3000;
      const head = `${id} ${size} `;
      const status = await send("POST", head + "x".repeat(size - head.length));
      answers.set(status, (answers.get(status) ?? 0) + 1);
      if (Math.random() < 0.5) await send("GET");
    }
  }),
);
state.isDone = true;
await breaking;
const report = await call<{
  hedged_requests: number;
  paths: { path: string; requests: number; failures: number }[];
}>("GET", `/zones/${zoneId}/edge/smart_routing/analytics`);
const twice = [...arrived.values()].filter((times) => times > 1).length;
say(
  `${posts} POSTs: ${[...answers]
    .toSorted(([a], [b]) => a - b)
    .map(([status, times]) => `${times} × ${status}`)
    .join(", ")}`,
);
say(`${arrived.size} bodies arrived; ${twice} more than once; ${torn} not whole`);
say(`hedged GETs: ${report.hedged_requests}`);
for (const { path, requests, failures } of report.paths)
  say(`${path}: ${requests} requests, ${failures} failures`);
for (const node of [edge, relay]) await node.stop();
process.exit(twice === 0 && torn === 0 ? 0 : 1);
