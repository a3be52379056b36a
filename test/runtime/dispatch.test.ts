import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CpuClock } from "../../src/sandbox/process/cpu-clock.ts";
import { cellPids } from "./cell-processes.ts";
import { startHosting, startOutside, type Hosting, type Outside, type EdgeResponse } from "./platform.ts";

let hosting: Hosting;
let outside: Outside;

/** A dispatcher as hosts write it: `name` is the expression that finds its customer. */
const dispatcher = (name: string, options = "{}"): string => `
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    try {
      const name = ${name};
      return await env.CUSTOMERS.get(name, {}, ${options}).fetch(request);
    } catch (error) {
      if (error.message.startsWith("Worker not found")) return new Response("no such customer", { status: 404 });
      return new Response(error.message, { status: 500 });
    }
  },
};`;
const toShop = { type: "dispatch_namespace", name: "CUSTOMERS", namespace: "shop" };

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => {
    const hops = Number(/^\/hop(\d)$/.exec(request.url!)?.[1] ?? 0);
    if (hops > 0) response.writeHead(302, { location: `/hop${hops - 1}` }).end();
    else response.end(`fetched ${request.url}`);
  });
  await hosting.createNamespace("shop");
  await hosting.deployCustomer("shop", "hello", {
    code: `export default { fetch(request, env, ctx) {
      return Response.json({ url: request.url, cf: request.cf ?? null, text: env.TEXT, keys: Object.keys(env) });
    } };`,
    bindings: [{ type: "plain_text", name: "TEXT", text: "of hello" }],
  });
  await hosting.deploy("by-path", { code: dispatcher(`url.pathname.split("/")[1]`), bindings: [toShop] });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

/** The answer of a customer's handler behind a dispatcher with these options. */
async function dispatched(body: string, options = "{}", path = "/"): Promise<EdgeResponse> {
  const code = `export default { async fetch(request, env, ctx) { ${body.replaceAll("OUTSIDE", outside.url)} } };`;
  await hosting.deployCustomer("shop", "customer", code);
  await hosting.deploy("to-customer", { code: dispatcher(`"customer"`, options), bindings: [toShop] });
  return hosting.ask("to-customer", path);
}

interface Usage {
  script_name: string;
  requests: number;
  faults: number;
  cpu_ms: number;
  cpu_ms_p99: number | null;
  last_fault: { message: string } | null;
}
const usageOf = async (namespace: string, order = "requests"): Promise<Usage[]> =>
  (
    await hosting.call(
      "GET",
      `/accounts/${hosting.account}/edge/dispatch/namespaces/${namespace}/usage?order=${order}`,
    )
  ).body.result;

test("dispatches go on when their visitors leave, and no longer count when they have ended", async () => {
  await hosting.deployCustomer(
    "shop",
    "slow",
    `let [begun, ended] = [0, 0];
export default { async fetch({ url }) {
  if (url.endsWith("/seen")) return new Response(begun + " " + ended);
  begun++;
  await scheduler.wait(500);
  ended++;
  return new Response("slow");
} };`,
  );
  await hosting.deploy("to-slow", { code: dispatcher(`"slow"`), bindings: [toShop] });
  const seen = async (): Promise<string> => (await hosting.ask("to-slow", "/seen")).body;
  const options = { headers: { host: hosting.hostOf("to-slow") }, agent: false };
  // In all, more than an account may have at once in a cell.
  for (let all = 30; all <= 90; all += 30) {
    const sent = Array.from({ length: 30 }, () => request(hosting.ready.edge, options).on("error", () => {}));
    for (const each of sent) each.end();
    await expect.poll(seen).toMatch(new RegExp(`^${all} `));
    for (const each of sent) each.destroy();
    await expect.poll(seen).toBe(`${all} ${all}`);
  }
  expect((await hosting.ask("to-slow")).body).toBe("slow");
});

describe.each([
  ["in its cell", "counted", {}],
  ["through the gateway", "counted-alone", { trusted_workers: true }],
])("the usage of a customer that runs %s", (_, namespace, more) => {
  test("has its requests, its faults and its CPU time, until it is deleted", async () => {
    await hosting.createNamespace(namespace, more);
    const busy = `export default { fetch(request) {
      if (request.url.endsWith("/fail")) throw new TypeError("no stock");
      for (const end = Date.now() + 20; Date.now() < end;);
      return new Response("done");
    } };`;
    await hosting.deployCustomer(namespace, "busy", busy);
    await hosting.deployCustomer(namespace, "quiet", `export default { fetch: () => new Response("ok") };`);
    const bindings = [{ type: "dispatch_namespace", name: "CUSTOMERS", namespace }];
    await hosting.deploy(`to-${namespace}`, { code: dispatcher(`url.pathname.split("/")[1]`), bindings });
    expect(await usageOf(namespace)).toEqual([]);
    for (const path of ["/quiet", "/busy/fail", ...Array<string>(10).fill("/busy"), "/busy/fail", "/quiet"])
      await hosting.ask(`to-${namespace}`, path);
    expect(await usageOf(namespace, "faults")).toMatchObject([
      { script_name: "busy", requests: 12, faults: 2, last_fault: { message: "TypeError: no stock" } },
      { script_name: "quiet", requests: 2, faults: 0, last_fault: null },
    ]);
    const [busiest, other] = await usageOf(namespace, "cpu_ms");
    expect(busiest!.script_name).toBe("busy");
    expect(busiest!.cpu_ms).toBeGreaterThan(other!.cpu_ms);
    await hosting.call(
      "DELETE",
      `/accounts/${hosting.account}/edge/dispatch/namespaces/${namespace}/scripts/busy`,
    );
    await hosting.deployCustomer(namespace, "busy", busy);
    expect((await usageOf(namespace)).map(({ script_name: name }) => name)).toEqual(["quiet"]);
  });
});

test("the usage does not wait for a process that does not answer, and says that figures are missing", async () => {
  await hosting.createNamespace("stalled");
  let clocks: { clock: CpuClock; beganMs: number }[] = [];
  const enough = await startOutside((_request, response) => {
    const usedMs = Math.max(...clocks.map(({ clock, beganMs }) => clock.writtenMs() - beganMs));
    response.end(usedMs > 1500 ? "yes" : "no");
  });
  const loop = `export default { async fetch(request) {
    for (let isEnough = !request.url.endsWith("/loop"); !isEnough;) {
      for (const end = Date.now() + 100; Date.now() < end;);
      isEnough = (await (await fetch("${enough.url}")).text()) === "yes";
    }
    return new Response("ended");
  } };`;
  await hosting.deployCustomer("stalled", "loops", loop);
  const bindings = [{ type: "dispatch_namespace", name: "CUSTOMERS", namespace: "stalled" }];
  await hosting.deploy("to-stalled", { code: dispatcher(`url.pathname.split("/")[1]`), bindings });
  const path = `/accounts/${hosting.account}/edge/dispatch/namespaces/stalled/usage`;
  const messages: unknown[] = [];
  let requests = 0;
  // The periodic collection may come between the run and the signal; then no figure is missing.
  while (messages.length === 0 && requests < 5) {
    await hosting.ask("to-stalled", "/loops/quick");
    requests++;
    const cells = cellPids(process.pid);
    for (const pid of cells) process.kill(pid, "SIGSTOP");
    // It answers while they stand.
    messages.push(...(await hosting.call("GET", path)).body.messages);
    for (const pid of cells) process.kill(pid, "SIGCONT");
  }
  expect(messages[0]).toMatchObject({ code: 10_014 });
  await expect.poll(async () => (await usageOf("stalled"))[0]?.requests).toBe(requests);
  clocks = cellPids(process.pid).map((pid) => {
    const clock = new CpuClock(pid);
    return { clock, beganMs: clock.writtenMs() };
  });
  await hosting.ask("to-stalled", "/loops/loop");
  for (const { clock } of clocks) clock.close();
  await enough.close();
  const longest = async (): Promise<number | undefined> =>
    (await usageOf("stalled"))[0]?.cpu_ms_p99 ?? undefined;
  await expect.poll(longest).toBeGreaterThanOrEqual(1000);
});

describe("a dispatcher", () => {
  test("finds customers by the first segment of the path", async () => {
    const { status, body } = await hosting.ask("by-path", "/hello/there?a=1");
    expect(status, body).toBe(200);
    expect(JSON.parse(body)).toEqual({
      url: `http://${hosting.hostOf("by-path")}/hello/there?a=1`,
      cf: null,
      text: "of hello",
      keys: ["TEXT"],
    });
  });

  test("finds customers by the first label of the host", async () => {
    const zone = await hosting.createZone("shops.example", outside.port);
    await hosting.deploy("by-label", { code: dispatcher(`url.hostname.split(".")[0]`), bindings: [toShop] });
    await hosting.call("POST", `/zones/${zone}/workers/routes`, {
      pattern: "*.shops.example/*",
      script: "by-label",
    });
    const { status, body } = await hosting.askHost("hello.shops.example", "/x");
    expect(status, body).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ url: "http://hello.shops.example/x" });
    expect(await hosting.askHost("nobody.shops.example")).toMatchObject({
      status: 404,
      body: "no such customer",
    });
  });

  test("finds customers by a key-value namespace of hosts", async () => {
    const zone = await hosting.createZone("custom.example", outside.port);
    const id = await hosting.createKv("hosts", { "custom.example": "hello" });
    await hosting.deploy("by-key", {
      code: dispatcher(`(await env.HOSTS.get(url.hostname)) ?? "nobody"`),
      bindings: [toShop, { type: "kv_namespace", name: "HOSTS", namespace_id: id }],
    });
    await hosting.call("POST", `/zones/${zone}/workers/routes`, {
      pattern: "*custom.example/*",
      script: "by-key",
    });
    expect((await hosting.askHost("custom.example")).status).toBe(200);
    expect((await hosting.askHost("www.custom.example")).status).toBe(404);
  });

  test("gets an error for a missing or deleted customer", async () => {
    expect(await hosting.ask("by-path", "/nobody")).toMatchObject({ status: 404, body: "no such customer" });
    await hosting.deployCustomer(
      "shop",
      "leaving",
      `export default { fetch: () => new Response("still here") };`,
    );
    expect((await hosting.ask("by-path", "/leaving")).body).toBe("still here");
    const base = `/accounts/${hosting.account}/workers/dispatch/namespaces/shop/scripts`;
    expect((await hosting.call("DELETE", `${base}/leaving`)).status).toBe(200);
    expect((await hosting.ask("by-path", "/leaving")).status).toBe(404);
  });

  test("uses a customer's new version at once", async () => {
    for (const word of ["first", "second", "third"]) {
      await hosting.deployCustomer(
        "shop",
        "changing",
        `export default { fetch: () => new Response("${word}") };`,
      );
      expect((await hosting.ask("by-path", "/changing")).body).toBe(word);
    }
  });

  test.each([
    [
      `env.CUSTOMERS.get("hello", { some: "argument" })`,
      /Arguments of a dispatched script are not supported/,
    ],
    [
      `env.CUSTOMERS.get("hello", {}, { limit: {} })`,
      /Unknown options "limit". Expected one of limits, outbound/,
    ],
    [`env.CUSTOMERS.get("hello", {}, { limits: { cpu: 5 } })`, /Unknown limits "cpu"/],
    [`env.CUSTOMERS.get("hello", {}, { limits: { cpuMs: "5" } })`, /limits.cpuMs to be a number/],
    [`env.CUSTOMERS.get("hello", {}, { limits: { subRequests: -1 } })`, /limits.subRequests to be a number/],
    [`env.CUSTOMERS.get(5)`, /name of a script as a string/],
    [`env.CUSTOMERS.get("hello", {}, { outbound: { name: "x" } })`, /names no outbound script/],
  ])("is refused what is not supported: %s", async (expression, message) => {
    await hosting.deploy("odd", {
      code: `export default { async fetch(request, env) {
        try { return await ${expression}.fetch(request); } catch (error) { return new Response(error.message); }
      } };`,
      bindings: [toShop],
    });
    expect((await hosting.ask("odd")).body).toMatch(message);
  });

  test("receives a customer's exception with its name, and can hide it", async () => {
    const response = await dispatched(`throw new RangeError("a customer's own")`);
    expect(response).toMatchObject({ status: 500, body: "a customer's own" });
  });

  test("that catches nothing shows the page of the limit that the customer went over", async () => {
    await hosting.deployCustomer("shop", "endless", `export default { fetch() { for (;;) {} } };`);
    await hosting.deploy("careless", {
      code: `export default { fetch: (request, env) => env.CUSTOMERS.get("endless", {}, { limits: { cpuMs: 20 } }).fetch(request) };`,
      bindings: [toShop],
    });
    const { status, body } = await hosting.ask("careless");
    expect([status, body.includes("error 1102")]).toEqual([503, true]);
  });
});

describe("limits", () => {
  test("cpuMs ends the run every time, and no other run", async () => {
    await hosting.deployCustomer("shop", "spin", `export default { fetch() { for (;;) {} } };`);
    await hosting.deploy("limited", {
      code: dispatcher(`url.pathname.split("/")[1]`, "{ limits: { cpuMs: 50 } }"),
      bindings: [toShop],
    });
    for (let i = 0; i < 3; i++) {
      const [spin, ...others] = await Promise.all([
        hosting.ask("limited", "/spin"),
        ...Array.from({ length: 10 }, async () => hosting.ask("limited", "/hello")),
      ]);
      expect(spin).toMatchObject({ status: 500, body: "Worker exceeded CPU time limit." });
      expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
    }
  });

  const fetches = (count: number): string => `
    const results = [];
    for (let i = 0; i < ${count}; i++) results.push(await (await fetch("OUTSIDE/" + i)).text());
    return Response.json(results);`;

  test("subRequests counts every fetch", async () => {
    const limits = "{ limits: { subRequests: 2 } }";
    expect((await dispatched(fetches(2), limits)).status).toBe(200);
    expect(await dispatched(fetches(3), limits)).toMatchObject({
      status: 500,
      body: "Too many subrequests.",
    });
    expect(await dispatched(fetches(1), "{ limits: { subRequests: 0 } }")).toMatchObject({
      body: "Too many subrequests.",
    });
    // Concurrent fetches count as well.
    const together = `return Response.json(await Promise.all(Array.from({ length: 5 }, () => fetch("OUTSIDE/").then(() => "let", ({ message }) => message))));`;
    const results = JSON.parse((await dispatched(together, limits)).body) as string[];
    expect(results.toSorted()).toEqual([
      ...Array.from({ length: 3 }, () => "Too many subrequests."),
      "let",
      "let",
    ]);
  });

  test("subRequests counts each hop of a redirect", async () => {
    const limits = "{ limits: { subRequests: 3 } }";
    const follow = (hops: number): string =>
      `return new Response(await (await fetch("OUTSIDE/hop${hops}")).text());`;
    expect(await dispatched(follow(2), limits)).toMatchObject({ status: 200, body: "fetched /hop0" });
    expect(await dispatched(follow(3), limits)).toMatchObject({ status: 500, body: "Too many subrequests." });
  });

  test("subRequests counts what bindings do, and what is left running", async () => {
    const id = await hosting.createKv("counted", { key: "value" });
    await hosting.deployCustomer("shop", "reading", {
      code: `export default { async fetch(request, { KV }) {
        const results = [];
        for (let i = 0; i < 3; i++) results.push(await KV.get("key").catch(({ message }) => message));
        return Response.json(results);
      } };`,
      bindings: [{ type: "kv_namespace", name: "KV", namespace_id: id }],
    });
    await hosting.deploy("to-reading", {
      code: dispatcher(`"reading"`, "{ limits: { subRequests: 2 } }"),
      bindings: [toShop],
    });
    expect(JSON.parse((await hosting.ask("to-reading")).body)).toEqual([
      "value",
      "value",
      "Too many subrequests.",
    ]);
  });

  test("each request has its own", async () => {
    const limits = `{ limits: { subRequests: url.pathname.length } }`;
    const count = `let n = 0; try { for (;;) { await fetch("OUTSIDE/x"); n++; } } catch { return new Response(String(n)); }`;
    await dispatched(count, limits);
    const answers = await Promise.all(
      ["/", "/2", "/33", "/444"].map(async (path) => (await hosting.ask("to-customer", path)).body),
    );
    expect(answers).toEqual(["1", "2", "3", "4"]);
  });
});
