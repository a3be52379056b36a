import { benchToken } from "../../../bench/lib/child.ts";
import type { Random } from "../../name-server/random.ts";
import { mutated, seeds } from "../../name-server/mutations.ts";
import type { Target } from "../target.ts";
import { describedCalls } from "./calls.ts";
import { converse, type Sent } from "./connection.ts";
import { sendDatagrams } from "./datagrams.ts";
import { clientHellos, tlsMessage } from "./hellos.ts";
import { http1Message, noise, type Surroundings } from "./http1.ts";
import { Http2Speaker } from "./http2.ts";
import { startOrigin } from "./origin.ts";
import { visitsOf } from "./visits.ts";
import { upgradeRequest, webSocketFrame } from "./web-socket.ts";

/** A listener of the platform, from an attacker's view. */
export interface Listener {
  /** The messages for one connection. */
  messages(random: Random): Buffer[];
  send(random: Random, messages: readonly Buffer[]): Promise<Sent>;
  /** An ordinary request. Rejects if the response is wrong. */
  visit(): Promise<void>;
  atOnce: number;
}

const atOnce = 24;
export const goodZone = "good.example";
const fuzzZone = "fuzz.example";

const several = (random: Random, max: number, one: (index: number) => Buffer): Buffer[] =>
  Array.from({ length: 1 + random.below(max) }, (_, index) => one(index));
const portOf = (url: string): number => Number(new URL(url).port);

/** Every listener of the platform, each with content behind it. */
export async function startListeners(
  target: Target,
): Promise<{ all: Record<string, Listener>; close(): Promise<void> }> {
  const { ready } = target.started;
  const origin = await startOrigin();
  await target.createZone(goodZone, origin.port);
  await target.deploy("echo", echoScript);
  // Random calls use a different account than visits.
  const { id: account } = (await target.call("POST", "/accounts", { name: "Fuzz" })) as { id: string };
  const { id: zone } = (await target.call("POST", "/zones", {
    name: fuzzZone,
    account: { id: account },
  })) as { id: string };
  const record = { type: "A", name: "*", content: "127.0.0.1", proxied: true, ttl: 1 };
  await target.call("POST", `/zones/${zone}/dns_records`, record);
  const visits = visitsOf(target, goodZone);

  const hosts = [`echo.${goodZone}`, target.hostOf("echo"), `a.${fuzzZone}`, "unknown.example", "localhost"];
  const calls = describedCalls({ account_id: account, zone_id: zone });
  const ofApi: Surroundings = {
    hosts: ["localhost", "127.0.0.1", "api.example"],
    headers: [`authorization: Bearer ${benchToken}`, "content-type: application/json"],
    call: (random) => (random.chance(85) ? calls(random) : { method: "GET", path: random.pick(apiPaths) }),
  };
  const ofForms: Surroundings = {
    ...ofApi,
    headers: [ofApi.headers[0]!, "content-type: multipart/form-data; boundary=fuzz"],
  };
  const ofEdge: Surroundings = {
    hosts,
    headers: [],
    call: (random) => ({ method: random.pick(["GET", "GET", "POST", "HEAD"]), path: random.pick(edgePaths) }),
  };
  const http1 =
    (...around: Surroundings[]) =>
    (random: Random): Buffer[] =>
      random.chance(3)
        ? [noise(random)]
        : several(random, 4, () => http1Message(random, random.pick(around)));
  const to =
    (url: string): Listener["send"] =>
    async (random, messages) =>
      converse(random, portOf(url), messages);
  const overTls =
    (protocol: string): Listener["send"] =>
    async (random, messages) =>
      converse(random, portOf(ready.edge_tls!), messages, {
        servername: `echo.${goodZone}`,
        ALPNProtocols: [protocol],
      });
  const hellos = await clientHellos();
  const questions = seeds();
  const dnsPort = Number(ready.dns.split(":").at(-1));
  const metrics = { hosts: ["localhost"], headers: [], call: () => ({ method: "GET", path: "/metrics" }) };

  const all: Record<string, Listener> = {
    "API, HTTP/1.1": {
      atOnce,
      messages: http1(ofApi, ofApi, ofForms),
      send: to(ready.api),
      visit: visits.api,
    },
    "API, tails": {
      atOnce: 6,
      messages: (random) => several(random, 8, () => webSocketFrame(random)),
      send: async (random, messages) => {
        const path = `/accounts/${target.account}/workers/scripts/echo/tails`;
        const { id, url } = (await target.call("POST", path, {})) as { id: string; url: string };
        const upgrade = upgradeRequest(random, "localhost", new URL(url).pathname);
        const sent = await converse(random, portOf(ready.api), [upgrade, ...messages]);
        await target.call("DELETE", `${path}/${id}`).catch(() => {}); // who leaves ends it
        return sent;
      },
      visit: visits.tail,
    },
    "edge, HTTP/1.1": { atOnce, messages: http1(ofEdge), send: to(ready.edge), visit: visits.edge },
    "edge, WebSockets": {
      atOnce,
      messages: (random) => [
        upgradeRequest(random, random.pick(hosts.slice(0, 2)), "/socket"),
        ...several(random, 8, () => webSocketFrame(random)),
      ],
      send: to(ready.edge),
      visit: visits.webSocket,
    },
    "edge, HTTP/1.1 over TLS": {
      atOnce,
      messages: http1(ofEdge),
      send: overTls("http/1.1"),
      visit: visits.tls,
    },
    "edge, HTTP/2": {
      atOnce,
      messages: (random) => {
        const speaker = new Http2Speaker(random, hosts);
        return [speaker.start(), ...several(random, 10, () => speaker.message())];
      },
      send: overTls("h2"),
      visit: visits.http2,
    },
    "edge, what is no TLS": {
      atOnce,
      messages: (random) => several(random, 3, () => tlsMessage(random, hellos)),
      send: to(ready.edge_tls!),
      visit: visits.tls,
    },
    "DNS, UDP": {
      atOnce: 4,
      messages: (random) => several(random, 40, () => mutated(random, random.pick(questions))),
      send: async (_random, messages) => sendDatagrams(dnsPort, messages),
      visit: visits.dnsUdp,
    },
    "DNS, TCP": {
      atOnce,
      messages: (random) => several(random, 8, () => framed(random, mutated(random, random.pick(questions)))),
      send: async (random, messages) => converse(random, dnsPort, messages),
      visit: visits.dnsTcp,
    },
    metrics: { atOnce: 4, messages: http1(metrics), send: to(ready.metrics!), visit: visits.metrics },
  };
  return { all, close: async () => origin.close() };
}

/** A query over TCP (RFC 1035, 4.2.2), possibly with a wrong length. */
function framed(random: Random, question: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(random.chance(93) ? question.length : random.pick([0, 1, 11, 65_535]));
  return Buffer.concat([length, question]);
}

const echoScript = `export default { async fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response(request.body);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", ({ data }) => server.send(data));
  return new Response(null, { status: 101, webSocket: client });
} };`;

const apiPaths = ["/", "/client/v4", "/client/v4/", "/dashboard", "/dashboard/images", "/healthz", "/readyz"];
const edgePaths = [
  ...[
    "/",
    "/echo",
    "/echo?a=b",
    "/cdn-cgi/image/width=10/http://a/b.png",
    "/cdn-cgi/imagedelivery/a/b/public",
  ],
  ...[
    "/cdn-cgi/image/width=-1,format=x/a",
    "/cdn-cgi/image/",
    "/cdn-cgi/trace",
    "/cdn-cgi/handler/scheduled",
  ],
  ...["/.well-known/acme-challenge/a", "/cdn-cgi/mediatransform/x", "/cdn-cgi/image/%ED%A0%80/%"],
];
