import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deploy, zoneWith } from "./helpers.ts";

const origin = createServer((request, response) => {
  request.resume();
  response.end(`origin ${request.url} ${"x".repeat(2000)}`);
});
let edge: Selvedge;
let port: number;
beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  ({ port } = origin.address() as AddressInfo);
  edge = await startSelvedge({ seed: "origins" });
});
afterAll(async () => {
  await edge.close();
  origin.close();
});
beforeEach(() => edge.reset());

const zone = async (): Promise<string> => {
  const id = await zoneWith(edge, {
    type: "A",
    name: "www.shop.example",
    content: "127.0.0.1",
    proxied: true,
  });
  await call(edge, "PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
  return id;
};
const visit = async (path = "/"): Promise<[status: number, body: string]> => {
  const answer = await edge.fetch(`http://www.shop.example${path}`);
  return [answer.status, await answer.text().catch(() => "cut")];
};

describe("faults of origins", () => {
  it.each([
    ["refuse", 521],
    ["reset", 520],
    ["hang", 524],
  ] as const)("an origin with %s is answered with %i, and goes on when cleared", async (then, status) => {
    await zone();
    const fault = await edge.faults.origin({ host: "www.shop.example", then });
    expect((await visit())[0]).toBe(status);
    expect(await fault.hits()).toBe(1);
    await edge.faults.clear();
    expect((await visit())[0]).toBe(200);
  });

  it("status, a cut and a damaged byte apply to the n-th request", async () => {
    await zone();
    await edge.faults.origin({ calls: 1, then: { status: 503 } });
    await edge.faults.origin({ calls: 2, then: { cutAfterBytes: 10 } });
    await edge.faults.origin({ calls: 3, then: { damageByte: 0 } });
    const whole = `origin / ${"x".repeat(2000)}`;
    // The newest fault that fits is asked first, and each counts the requests that reach it.
    expect((await visit())[0]).toBe(503);
    expect((await visit())[1]).toBe("cut");
    const [status, body] = await visit();
    expect([status, body.slice(1, 6), body.startsWith("o")]).toEqual([200, "rigin", false]);
    expect(await visit()).toEqual([200, whole]);
    expect(
      (await edge.outbound.requests()).map(({ status: each, answeredBy }) => [each, answeredBy]),
    ).toEqual([
      [503, "fault"],
      [200, "network"],
      [200, "network"],
      [200, "network"],
    ]);
  });

  it("an answer comes slowly and late, and is whole", async () => {
    await zone();
    await edge.faults.origin({ then: { bytesPerSecond: 20_000 } });
    const begun = performance.now();
    expect((await visit())[1]).toHaveLength(9 + 2000);
    expect(performance.now() - begun).toBeGreaterThan(80);
    await edge.faults.clear();
    await edge.faults.origin({ then: { latencyMs: 120 } });
    const later = performance.now();
    expect((await visit())[0]).toBe(200);
    expect(performance.now() - later).toBeGreaterThan(110);
  });

  it("an expired certificate counts only where it is verified", async () => {
    const id = await zone();
    await edge.faults.origin({ then: "tls-expired" });
    expect((await visit())[0]).toBe(200);
    await call(edge, "PATCH", `/zones/${id}/settings/ssl`, { value: "strict" });
    expect((await edge.fetch("https://www.shop.example/")).status).toBe(526);
  });

  it("a probability selects the same requests with the same seed", async () => {
    const round = async (): Promise<number[]> => {
      await zone();
      await edge.faults.origin({ probability: 0.5, then: "refuse" });
      const statuses: number[] = [];
      for (let i = 0; i < 12; i++) statuses.push((await visit())[0]);
      return statuses;
    };
    const first = await round();
    expect(new Set(first)).toEqual(new Set([200, 521]));
    await edge.reset();
    expect(await round()).toEqual(first);
  });
});

describe("faults of the resolver", () => {
  it("a name has no address, a slow one, or those that the test gives", async () => {
    await zoneWith(edge, {
      type: "CNAME",
      name: "www.shop.example",
      content: "origin.host.test",
      proxied: true,
    });
    await edge.faults.resolver({ name: "origin.host.test", then: "nxdomain" });
    expect((await visit())[0]).toBe(530);
    await edge.faults.clear();
    await edge.faults.resolver({ name: "origin.host.test", then: ["127.0.0.1"] });
    await edge.faults.origin({ address: "127.0.0.1", then: { status: 299 } });
    expect((await visit())[0]).toBe(299);
  });
});

describe("outbound requests", () => {
  const source = `export default { async fetch(request) {
    const { url, ...init } = await request.json();
    const answer = await fetch(url, init).catch((error) => Response.json(error.message));
    return Response.json([answer.status, answer.headers.get("x-made"), await answer.text()]);
  } }`;
  const ask = async (url: string, init: object = {}): Promise<unknown> => {
    const answer = await edge.fetch("http://www.shop.example/", {
      method: "POST",
      body: JSON.stringify({ url, ...init }),
    });
    return answer.json();
  };
  beforeEach(async () => {
    const zone_id = await zoneWith(edge, {
      type: "A",
      name: "api.shop.example",
      content: "192.0.2.7",
      proxied: true,
    });
    await deploy(edge, "asker", source, { hostname: "www.shop.example", zone_id });
  });

  it("the test answers what a script fetches, without a name server or a network", async () => {
    await edge.outbound.on("https://pay.example/charges/*", async (request) =>
      Response.json(
        {
          url: request.url,
          method: request.method,
          body: await request.text(),
          auth: request.headers.get("authorization"),
        },
        { status: 201, headers: { "x-made": "by the test" } },
      ),
    );
    const [status, made, text] = (await ask("https://pay.example/charges/7?x=1", {
      method: "POST",
      body: "ten",
      headers: { authorization: "Bearer mine" },
    })) as [number, string, string];
    expect([status, made]).toEqual([201, "by the test"]);
    expect(JSON.parse(text)).toEqual({
      url: "https://pay.example/charges/7?x=1",
      method: "POST",
      body: "ten",
      auth: "Bearer mine",
    });
    expect(await edge.outbound.requests()).toMatchObject([
      {
        from: "script",
        method: "POST",
        url: "https://pay.example/charges/7?x=1",
        answeredBy: "test",
        status: 201,
        headers: { authorization: "REDACTED" },
      },
    ]);
  });

  it("the newest answer answers, a regular expression too, until it is disposed of or the platform reset", async () => {
    await edge.outbound.on("https://pay.example/*", () => new Response("first"));
    {
      await using _ = await edge.outbound.on(/pay\.example\/v\d$/, () => new Response("second"));
      expect(await ask("https://pay.example/v2")).toEqual([200, null, "second"]);
    }
    expect(await ask("https://pay.example/v2")).toEqual([200, null, "first"]);
  });

  it("what the test does not answer is refused by name, also for origins", async () => {
    const [, , thrown] = (await ask("https://pay.example/charges")) as [number, null, string];
    expect(thrown).toContain("The test does not answer GET https://pay.example/charges");
    const visited = await edge.fetch("http://api.shop.example/");
    expect([visited.status, await visited.text()]).toMatchObject([
      403,
      expect.stringContaining("http://api.shop.example/"),
    ]);
    const requests = await edge.outbound.requests();
    expect(requests.map(({ from, answeredBy }) => [from, answeredBy])).toEqual([
      ["script", "refused"],
      ["origin", "refused"],
    ]);
  });

  it("a TCP connection and a WebSocket are refused by name", async () => {
    const zone_id = (await call<{ id: string }[]>(edge, "GET", "/zones"))[0]!.id;
    const code = `import { connect } from "cloudflare:sockets";
      export default { async fetch() {
        const socket = connect("db.example:5432");
        const failures = [await socket.opened.then(() => "open", (error) => error.message)];
        const upgrade = { headers: { upgrade: "websocket" } };
        failures.push(await fetch("https://live.example/feed", upgrade).then((a) => a.status, (error) => error.message));
        return Response.json(failures);
      } }`;
    await deploy(edge, "connector", code, { hostname: "tcp.shop.example", zone_id });
    const answer = await edge.fetch("http://tcp.shop.example/");
    const failures = (await answer.json()) as unknown[];
    expect(String(failures[0])).not.toBe("open");
    expect(failures[1]).not.toBe(101);
    const requests = await edge.outbound.requests();
    expect(requests.map(({ from, url, answeredBy }) => [from, url, answeredBy])).toEqual([
      ["socket", "tcp://db.example:5432", "refused"],
      ["socket", "wss://live.example/feed", "refused"],
    ]);
  });

  it("the test answers for an origin, at its host", async () => {
    await edge.outbound.on("http://api.shop.example/*", (request) => new Response(`for ${request.url}`));
    expect(await (await edge.fetch("http://api.shop.example/a")).text()).toBe(
      "for http://api.shop.example/a",
    );
  });

  it("a fault applies to a script's request before the test answers", async () => {
    await edge.outbound.on("https://pay.example/*", () => new Response("ok"));
    await edge.faults.origin({ host: "pay.example", times: 1, then: { status: 500 } });
    expect(await ask("https://pay.example/")).toEqual([500, null, "A fault of the test kit"]);
    expect(await ask("https://pay.example/")).toEqual([200, null, "ok"]);
  });

  it("an answer that throws fails the test", async () => {
    await edge.outbound.on("https://pay.example/*", () => {
      throw new Error("no such charge");
    });
    expect(await ask("https://pay.example/")).toEqual([502, null, "The test's answer threw an error"]);
    await expect(edge.check()).rejects.toThrow("GET https://pay.example/ threw: Error: no such charge");
    await edge.check();
  });
});

it("refuse: the test fails that reaches out, also after a reset, and names the request", async () => {
  const strict = await startSelvedge({ outbound: "refuse" });
  const zone_id = await zoneWith(strict, {
    type: "A",
    name: "www.shop.example",
    content: "192.0.2.7",
    proxied: true,
  });
  expect(zone_id).toMatch(/^[0-9a-f]{32}$/);
  await strict.fetch("http://www.shop.example/one");
  await expect(strict.check()).rejects.toThrow("Not answered: GET http://www.shop.example/one (origin)");
  await strict.fetch("http://www.shop.example/two");
  await strict.reset();
  await expect(strict.close()).rejects.toThrow("Not answered: GET http://www.shop.example/two (origin)");
});
