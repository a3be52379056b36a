import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createZone } from "../snippets/example-platform.ts";
import { nextMessage, startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

let hosting: Hosting;
let outside: Outside;
/** Values of the header that counts hops, as an origin received them. */
let via: string[] = [];

const origin = (script: string): string =>
  `http://${hosting.hostOf(script)}:${new URL(hosting.ready.edge).port}`;

/** Calls the URL in `next`, counts the calls, and returns the last answer. */
const caller = (next: string): string =>
  `let calls = 0;
   export default { async fetch(request, env) {
     const url = new URL(request.url);
     if (url.pathname === "/calls") return new Response(String(calls));
     if (url.pathname === "/headers") return Response.json([...request.headers]);
     calls++;
     try { return await ${next}; }
     catch (error) { return new Response("caught: " + error.message, { status: 599 }); }
   } };`;

beforeAll(async () => {
  hosting = await startHosting({
    privateNetworks: "all",
    requestSubrequestsMax: 200,
    cells: 1, // a script counts its calls in one isolate
    requestScriptsMax: 1000,
    scriptSubrequestsMax: 150,
  });
  outside = await startOutside((request, response) => {
    via.push(String(request.headers["cf-ew-via"]));
    response.end("outside");
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

const calls = async (script: string): Promise<number> => Number((await hosting.ask(script, "/calls")).body);

describe("loops", () => {
  test("of two scripts that fetch each other's hosts end after 16 calls, with the error that says so", async () => {
    await hosting.deploy("ping", caller(`fetch("${origin("pong")}/")`));
    await hosting.deploy("pong", caller(`fetch("${origin("ping")}/")`));
    const { status, body } = await hosting.ask("ping");
    expect([status, body]).toEqual([508, expect.stringContaining("1019")]);
    expect((await calls("ping")) + (await calls("pong"))).toBe(17);
  });

  test("cannot be hidden by a script that removes or forges the header, or spells the host differently", async () => {
    const next = `fetch(new Request("http://" + "${hosting.hostOf("hider")}".toUpperCase() + ".:${new URL(hosting.ready.edge).port}/", {
      headers: { "cf-ew-via": "0.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA", "CF_EW_VIA": "0" } }))`;
    await hosting.deploy("hider", caller(next));
    const { status, body } = await hosting.ask("hider", "/", { headers: { "cf-ew-via": "x" } });
    expect([status, body]).toEqual([508, expect.stringContaining("1019")]);
    expect(await calls("hider")).toBe(17);
  });

  test("over service bindings and hosts in turn are counted together", async () => {
    await hosting.deploy("over-host", caller("new Response()"));
    await hosting.deploy("over-binding", {
      code: caller(`env.NEXT.fetch(request)`),
      bindings: [{ type: "service", name: "NEXT", service: "over-host" }],
    });
    await hosting.deploy("over-host", caller(`fetch("${origin("over-binding")}/")`));
    await hosting.ask("over-binding");
    expect((await calls("over-binding")) + (await calls("over-host"))).toBe(17);
  });

  test("through snippets are counted too", async () => {
    await createZone(hosting.ready.api, "snippets.localhost", outside.port, [
      {
        name: "loops",
        code: `export default { async fetch() { return fetch("${origin("after-snippet")}/"); } };`,
      },
    ]);
    const { port } = new URL(hosting.ready.edge);
    await hosting.deploy("after-snippet", caller(`fetch("http://snippets.localhost:${port}/")`));
    const { status, body } = await hosting.askHost("snippets.localhost");
    expect([status, body]).toEqual([508, expect.stringContaining("1019")]);
    expect(await calls("after-snippet")).toBe(8);
  });

  test("that start again after the answer are still counted", async () => {
    await hosting.deploy(
      "later",
      `let calls = 0;
       export default { fetch(request, env, ctx) {
         if (request.url.endsWith("/calls")) return new Response(String(calls));
         calls++;
         ctx.waitUntil(fetch("${origin("later")}/").then((response) => response.text()));
         return new Response();
       } };`,
    );
    await hosting.ask("later");
    await vi.waitFor(async () => expect(await calls("later")).toBe(17));
    expect(await calls("later")).toBe(17);
  });

  test("a visitor can neither see nor make the header, and no script sees it", async () => {
    await hosting.deploy(
      "shows",
      caller(`fetch("${origin("shows")}/headers", { headers: { "x-own": "1" } })`),
    );
    via = [];
    await hosting.deploy("goes-out", caller(`fetch("${outside.url}/", { headers: { "cf-ew-via": "own" } })`));
    await hosting.ask("goes-out");
    expect(via).toEqual([expect.stringMatching(/^1\.[\w-]{22}\.[\w-]{22}$/)]);
    for (const value of [via[0]!, "99.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA", "99"]) {
      const { status, body } = await hosting.ask("shows", "/headers", { headers: { "cf-ew-via": value } });
      expect(status).toBe(200);
      expect(body).not.toContain("cf-ew-via");
    }
    const nested = await hosting.ask("shows");
    expect(nested.body).toContain("x-own");
    expect(nested.body).not.toContain("cf-ew-via");
  });

  test("fan-outs over hosts are counted together, over all levels", async () => {
    const next = `Promise.all(Array.from({ length: 20 }, () => fetch("${origin("fan")}/").then((response) => response.text())))
      .then((texts) => new Response(texts.join("")))`;
    await hosting.deploy("fan", caller(next));
    await hosting.ask("fan");
    expect(await calls("fan")).toBeLessThanOrEqual(201);
    expect(await calls("fan")).toBeGreaterThan(100);
  });

  test("WebSockets to own hosts are counted too", async () => {
    await hosting.deploy(
      "socket",
      `let calls = 0;
       export default { async fetch(request) {
         if (request.url.endsWith("/calls")) return new Response(String(calls));
         calls++;
         const answer = await fetch("${origin("socket")}/", { headers: { upgrade: "websocket" } });
         if (answer.webSocket === null) {
           const pair = new WebSocketPair();
           pair[1].accept();
           pair[1].send("end: " + answer.status);
           return new Response(null, { status: 101, webSocket: pair[0] });
         }
         return new Response(null, { status: 101, webSocket: answer.webSocket });
       } };`,
    );
    expect(await nextMessage(hosting.connect("socket"))).toBe("end: 508");
    expect(await calls("socket")).toBe(17);
  });
});
