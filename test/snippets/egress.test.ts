import { execFileSync } from "node:child_process";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { askWhole, createZone, listenLocally, type LocalServer } from "./example-platform.ts";

/**
 * Addresses that a snippet cannot reach: this machine, its network, its metadata service, the platform
 * itself. With the needed rights, the addresses are first added to the loopback interface with a listener, so
 * that a leak ends there and is detected.
 */
const metadata = "169.254.169.254";
const privateAddress = "10.123.45.67";
const code = `export default { async fetch(request) {
  const url = new URL(request.url).searchParams.get("u");
  try { const response = await fetch(url); return Response.json({ status: response.status, body: (await response.text()).slice(0, 100) }) }
  catch (error) { return Response.json({ error: error.message }) }
} };`;

const isRoot = process.getuid?.() === 0;
const given: string[] = [];
let deny: TestServer;
let origins: TestServer;
let origin: LocalServer;
let trap: Server;
let trapPort = 0;
let caught = 0;

beforeAll(async () => {
  for (const address of isRoot ? [metadata, privateAddress] : []) {
    try {
      execFileSync("ip", ["addr", "add", `${address}/32`, "dev", "lo"], { stdio: "ignore" });
      given.push(address);
    } catch {
      // not in this container, or the address exists already
    }
  }
  trap = createServer((socket) => {
    caught++;
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nleaked");
  });
  await new Promise<void>((resolve) => trap.listen(0, "0.0.0.0", resolve));
  trapPort = (trap.address() as { port: number }).port;
  origin = await listenLocally((_request, response) => void response.end("origin"));
  // One setting lets zones have origins on this machine; neither lets scripts reach it.
  [deny, origins] = await Promise.all([
    startTestServer({ privateNetworks: "deny" }),
    startTestServer({ privateNetworks: "origins" }),
  ]);
  for (const { ready } of [deny, origins])
    await createZone(ready.api, "egress.example", origin.port, [{ name: "egress", code }]);
});
afterAll(async () => {
  await Promise.all([deny.close(1000), origins.close(1000)]);
  origin.close();
  trap.close();
  for (const address of given) execFileSync("ip", ["addr", "del", `${address}/32`, "dev", "lo"]);
});

const tryOut = async (server: TestServer, url: string): Promise<{ status?: number; error?: string }> => {
  const path = `/?u=${encodeURIComponent(url)}`;
  return JSON.parse((await askWhole(server.ready.edge, "egress.example", { path })).body) as object;
};

const spellings = [
  "127.0.0.1",
  "localhost",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "0.0.0.0",
  "[::1]",
  "[::]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[64:ff9b::7f00:1]",
  "[fe80::1]",
  "[fd00::1]",
  metadata,
  "[::ffff:169.254.169.254]",
  privateAddress,
  "172.16.0.1",
  "192.168.0.1",
  "100.64.0.1",
  "198.18.0.1",
];

describe.each(["deny", "origins"] as const)("with private networks: %s", (setting) => {
  const server = (): TestServer => (setting === "deny" ? deny : origins);

  it.each(spellings)("%s is refused, in every spelling, with an error that can be caught", async (host) => {
    const before = caught;
    expect(await tryOut(server(), `http://${host}:${trapPort}/latest/meta-data/`)).toEqual({
      error: expect.stringMatching(/./),
    });
    expect(caught).toBe(before);
  });

  it("the platform's own listeners are refused", async () => {
    const { api, edge, dns } = server().ready;
    for (const url of [api, edge, `http://${dns}`, `${api.replace("127.0.0.1", "localhost")}/user`])
      expect(await tryOut(server(), url)).toEqual({ error: expect.stringMatching(/./) });
  });

  it.each(["file:///etc/passwd", "ftp://a.example/", "http://gateway/script/a", "http://cell/"])(
    "%s is not reachable",
    async (url) => {
      expect(await tryOut(server(), url)).toEqual({ error: expect.stringMatching(/./) });
    },
  );
});

it("a redirect reaches only addresses that a fetch may reach", async () => {
  const all = await startTestServer({ privateNetworks: "deny" });
  const detour = await listenLocally((_request, response) => {
    response.writeHead(302, { location: `http://${metadata}:${trapPort}/` }).end();
  });
  try {
    await createZone(all.ready.api, "egress.example", origin.port, [{ name: "egress", code }]);
    const before = caught;
    expect(await tryOut(all, detour.url)).toEqual({ error: expect.stringMatching(/./) });
    expect(caught).toBe(before);
  } finally {
    await all.close(1000);
    detour.close();
  }
});

it.runIf(isRoot)("the targets of a possible leak exist and listen", async () => {
  for (const address of given) {
    const response = await fetch(`http://${address}:${trapPort}/`);
    expect(await response.text()).toBe("leaked");
  }
});
