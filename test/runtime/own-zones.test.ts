import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createZone } from "../snippets/example-platform.ts";
import { nextMessage, startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

/** Scripts and snippets fetch hosts in zones of this installation, which the system's resolver does not know. */
let hosting: Hosting;
let outside: Outside;

beforeAll(async () => {
  // Scripts cannot reach private addresses directly, only as origins of a zone.
  hosting = await startHosting({ privateNetworks: "origins", trustedProxies: ["127.0.0.1/32"] });
  outside = await startOutside((request, response) => {
    const { host, "cf-connecting-ip": address } = request.headers;
    response.end(`origin ${host} ${request.url} from ${String(address)}`);
  });
  outside.server.on("upgrade", (_request, socket) => socket.end());
  const zone = await hosting.createZone("shop.example", outside.port);
  for (const [name, type, content] of [
    ["direct.shop.example", "A", "127.0.0.1"],
    ["alias.shop.example", "CNAME", "nowhere.invalid"],
  ])
    await hosting.call("POST", `/zones/${zone}/dns_records`, {
      type,
      name,
      content,
      proxied: false,
      ttl: 60,
    });
  await hosting.deploy(
    "target",
    `export default { fetch(request) {
    if (request.headers.get("upgrade") === "websocket") {
      const { 0: client, 1: server } = new WebSocketPair();
      server.accept();
      server.addEventListener("message", ({ data }) => server.send("pong " + data));
      return new Response(null, { status: 101, webSocket: client });
    }
    return Response.json({ url: request.url, address: request.headers.get("cf-connecting-ip"), method: request.method });
  } };`,
  );
  await hosting.call("POST", `/zones/${zone}/workers/routes`, {
    pattern: "routed.shop.example/*",
    script: "target",
  });
  await hosting.deploy(
    "fetcher",
    `export default { async fetch(request) {
    const url = new URL(request.url).searchParams.get("u");
    if (request.headers.get("upgrade") === "websocket") return fetch(url, request);
    try {
      const response = await fetch(url, { method: request.method, headers: { "x-forwarded-for": "192.0.2.77", "cf-connecting-ip": "192.0.2.77" } });
      return new Response(await response.text(), { status: response.status });
    } catch (error) { return new Response("caught: " + error.message, { status: 599 }); }
  } };`,
  );
  await createZone(hosting.ready.api, "snipped.example", outside.port, [
    {
      name: "fetching",
      code: `export default { async fetch(request) {
      const url = new URL(request.url).searchParams.get("u");
      try { const response = await fetch(url); return new Response(await response.text(), { status: response.status }); }
      catch (error) { return new Response("caught: " + error.message, { status: 599 }); }
    } };`,
    },
  ]);
  await whenActive("shop.example");
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

/** Answers come from memory once the zone is active, a moment after its creation. */
const whenActive = async (name: string): Promise<void> =>
  vi.waitFor(async () => {
    const { body } = await hosting.call("GET", `/zones?name=${name}`);
    expect((body.result as { status: string }[])[0]).toMatchObject({ status: "active" });
  });

const hosts = { script: () => hosting.hostOf("fetcher"), snippet: () => "snipped.example" };

describe.each(Object.keys(hosts) as (keyof typeof hosts)[])("a %s's fetch", (kind) => {
  const fetched = async (url: string): Promise<[number, string]> => {
    const { status, body } = await hosting.askHost(hosts[kind](), `/?u=${encodeURIComponent(url)}`);
    return [status, body];
  };
  test("of a host in another zone is handled as a visitor's, even with a claimed address", async () => {
    expect(await fetched("http://www.shop.example/path?q=1")).toEqual([
      200,
      "origin www.shop.example /path?q=1 from 100::1",
    ]);
    expect(await fetched("https://www.shop.example/secure")).toEqual([
      200,
      "origin www.shop.example /secure from 100::1",
    ]);
  });

  test("of a host with a route, and of a script's own host, runs the script", async () => {
    const [status, body] = await fetched("http://routed.shop.example/x");
    expect([status, JSON.parse(body)]).toEqual([
      200,
      { url: "http://routed.shop.example/x", address: "100::1", method: "GET" },
    ]);
    const own = `http://${hosting.hostOf("target")}/y`;
    expect(JSON.parse((await fetched(own))[1])).toMatchObject({ url: own });
  });

  test("of an unproxied name goes to its record, under the policy for addresses", async () => {
    const [status, body] = await fetched(`http://direct.shop.example:${outside.port}/`);
    expect([status, body]).toEqual([599, expect.stringMatching(/^caught: Origin not allowed: /)]);
  });

  test.each(["alias.shop.example", "unknown.invalid"])(
    "of a name without an address says so: %s",
    async (host) => {
      expect(await fetched(`http://${host}/`)).toEqual([
        599,
        `caught: DNS error: The name "${host}" has no address.`,
      ]);
    },
  );
});

test("WebSockets reach other zones too", async () => {
  const url = "http://routed.shop.example/";
  const socket = hosting.connect("fetcher", `/?u=${encodeURIComponent(url)}`);
  socket.on("open", () => socket.send("hello"));
  expect(await nextMessage(socket)).toBe("pong hello");
  socket.close();
});

test("two hosts that fetch each other end after 16 calls", async () => {
  const zone = await hosting.createZone("loop.example", outside.port);
  const to = (host: string): string => `let calls = 0; export default { fetch(request) {
    return request.url.endsWith("/calls") ? new Response(String(calls)) : (calls++, fetch("http://${host}/"));
  } };`;
  await hosting.deploy("here", to("b.loop.example"));
  await hosting.deploy("there", to("a.loop.example"));
  for (const [host, script] of [
    ["a", "here"],
    ["b", "there"],
  ])
    await hosting.call("POST", `/zones/${zone}/workers/routes`, {
      pattern: `${host}.loop.example/*`,
      script,
    });
  await whenActive("loop.example");
  const { status, body } = await hosting.askHost("a.loop.example");
  expect([status, body]).toEqual([508, expect.stringContaining("1019")]);
});
