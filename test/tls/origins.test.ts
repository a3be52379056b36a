import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, request as httpRequest, type Server } from "node:http";
import { createServer as createHttpsServer, request as httpsRequest } from "node:https";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/**
 * Connections to origins by the zone's setting ssl: with every kind of origin, for visitors with TLS and
 * without.
 */
let server: TestServer;
let zoneId: string;
let edgeAuthority: string;
const folder = mkdtempSync(join(tmpdir(), "selvedge-origins-"));
const host = "www.modes.example";
const kinds = ["plain", "trusted", "unknown", "other name", "not yet"] as const;
type Kind = (typeof kinds)[number];
const origins = new Map<Kind, Server>();
const names: (string | false | undefined)[] = [];

beforeAll(async () => {
  const trusted = openLocalAuthority(join(folder, "trusted"));
  const unknown = openLocalAuthority(join(folder, "unknown"));
  writeFileSync(join(folder, "ca.pem"), trusted.certificate);
  server = await startTestServer({
    edgeTlsListen: "127.0.0.1:0",
    originCa: [join(folder, "ca.pem")],
  });
  edgeAuthority = readFileSync(server.ready.tls_authority!, "utf8");
  const pairs = {
    trusted: trusted.issue([host]),
    unknown: unknown.issue([host]),
    "other name": trusted.issue(["other.modes.example"]),
    "not yet": trusted.issue([host]),
  };
  for (const kind of kinds) {
    const answer = (kind === "plain" ? "http" : "https") + (kind === "plain" ? "" : ` ${kind}`);
    const listener = (_request: unknown, response: { end(text: string): void }): void => response.end(answer);
    const origin =
      kind === "plain"
        ? createHttpServer(listener)
        : createHttpsServer(
            {
              cert: pairs[kind].certificate,
              key: pairs[kind].privateKey,
              ...(kind === "not yet" ? { minVersion: "TLSv1", maxVersion: "TLSv1.1" } : {}),
              SNICallback(name, done) {
                names.push(name);
                done(
                  null,
                  createSecureContext({ cert: pairs[kind].certificate, key: pairs[kind].privateKey }),
                );
              },
            },
            listener,
          );
    origin.on("upgrade", (_request, socket) => {
      socket.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n");
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    origins.set(kind, origin);
  }
  zoneId = (await server.call("POST", "/zones", { name: "modes.example" })).body.result.id as string;
  const record = { type: "A", name: "www", content: "127.0.0.1", proxied: true };
  await server.call("POST", `/zones/${zoneId}/dns_records`, record);
});
afterAll(async () => {
  for (const origin of origins.values()) {
    origin.closeAllConnections();
    origin.close();
  }
  await server.close(0);
  rmSync(folder, { recursive: true });
});

const portOf = (kind: Kind): number => (origins.get(kind)!.address() as AddressInfo).port;
async function set(ssl: string, kind: Kind, more: object = {}): Promise<void> {
  await server.call("PATCH", `/zones/${zoneId}/settings/ssl`, { value: ssl });
  await server.call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      { action: "route", expression: "true", action_parameters: { origin: { port: portOf(kind) }, ...more } },
    ],
  });
}

interface EdgeResponse {
  status: number;
  location: string | undefined;
  text: string;
}
function visit(scheme: "http" | "https", headers: Record<string, string> = {}): Promise<EdgeResponse> {
  const { hostname, port } = new URL(scheme === "https" ? server.ready.edge_tls! : server.ready.edge);
  return new Promise((resolve, reject) => {
    const common = {
      hostname,
      port,
      agent: false,
      headers: { host, accept: "application/json", ...headers },
    };
    const outgoing =
      scheme === "https"
        ? httpsRequest({ ...common, servername: host, ca: edgeAuthority })
        : httpRequest(common);
    outgoing.on("response", (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () =>
        resolve({ status: response.statusCode!, location: response.headers.location, text }),
      );
    });
    outgoing.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode!, location: undefined, text: "" });
    });
    outgoing.on("error", reject).end();
  });
}

describe.each<[ssl: string, kind: Kind, https: number | string, http: number | string]>([
  ["flexible", "plain", "http", "http"],
  ["full", "plain", 525, "http"],
  ["full", "trusted", "https trusted", 520],
  ["full", "unknown", "https unknown", 520],
  ["full", "other name", "https other name", 520],
  ["full", "not yet", 525, 520],
  ["strict", "plain", 525, "http"],
  ["strict", "trusted", "https trusted", 520],
  ["strict", "unknown", 526, 520],
  ["strict", "other name", 526, 520],
])("%s, with an origin that is %s", (ssl, kind, https, http) => {
  it.each([
    ["https", https],
    ["http", http],
  ] as const)(`a visitor over %s gets %s`, async (scheme, expected) => {
    await set(ssl, kind);
    const { status, text } = await visit(scheme);
    expect(status === 200 ? text : status).toBe(typeof expected === "number" ? expected : text);
    if (typeof expected === "string") expect(text).toBe(expected);
  });
});

it("off: visitors are redirected from https to http, which is served", async () => {
  await set("off", "plain");
  expect(await visit("https")).toMatchObject({ status: 301, location: `http://${host}/` });
  expect(await visit("http")).toMatchObject({ status: 200, text: "http" });
});

it("always_use_https redirects the others to https", async () => {
  await set("full", "trusted");
  await server.call("PATCH", `/zones/${zoneId}/settings/always_use_https`, { value: "on" });
  expect(await visit("http")).toMatchObject({ status: 301, location: `https://${host}/` });
  expect(await visit("https")).toMatchObject({ status: 200 });
  await server.call("PATCH", `/zones/${zoneId}/settings/always_use_https`, { value: "off" });
});

it("the server name of a rule is sent to the origin, and its certificate must match it", async () => {
  expect(new Set(names)).toEqual(new Set([host]));
  await set("strict", "other name", { sni: { value: "other.modes.example" } });
  expect(await visit("https")).toMatchObject({ status: 200, text: "https other name" });
  expect(names.at(-1)).toBe("other.modes.example");
});

it.each(["full", "strict"])("WebSockets go over TLS too: %s", async (ssl) => {
  const upgrade = { connection: "upgrade", upgrade: "websocket" };
  await set(ssl, "trusted");
  expect((await visit("https", upgrade)).status).toBe(101);
  await set(ssl, "unknown");
  expect((await visit("https", upgrade)).status).toBe(ssl === "full" ? 101 : 526);
});

it("smart routing respects the mode", async () => {
  await server.call("PATCH", `/zones/${zoneId}/edge/smart_routing`, { value: "on" });
  await set("strict", "trusted");
  expect(await visit("https")).toMatchObject({ status: 200, text: "https trusted" });
  await set("strict", "unknown");
  expect((await visit("https")).status).toBe(526);
});

/** The cipher suites in a ClientHello (RFC 8446, 4.1.2). */
function offeredSuites(record: Buffer): number[] {
  const session = 5 + 4 + 2 + 32;
  const list = session + 1 + record[session]!;
  return Array.from({ length: record.readUInt16BE(list) / 2 }, (_, i) =>
    record.readUInt16BE(list + 2 + 2 * i),
  );
}

it("no origin is offered DHE, whose prime it could choose so that the exchange takes seconds", async () => {
  const dhe = [0x33, 0x39, 0x67, 0x6b, 0x9e, 0x9f, 0xa2, 0xa3, 0xccaa, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3];
  const ecdheRsaWithAes128Gcm = 0xc02f;
  const offered: number[][] = [];
  const origin = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (hello: Buffer) => {
      offered.push(offeredSuites(hello));
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  await set("full", "trusted", { origin: { port: (origin.address() as AddressInfo).port } });
  for (const headers of [{}, { connection: "upgrade", upgrade: "websocket" }])
    expect((await visit("https", headers)).status).toBeGreaterThan(499);
  origin.close();
  expect(offered.length).toBeGreaterThanOrEqual(2);
  for (const suites of offered) {
    expect(suites).toContain(ecdheRsaWithAes128Gcm);
    expect(suites.filter((suite) => dhe.includes(suite))).toEqual([]);
  }
});
