import { execFileSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startHosting, startOutside, type Hosting, type Outside, type ScriptUpload } from "./platform.ts";

/*
 * What a hostile customer tries. The platform lets scripts out to this machine, so that there is something to reach; and an
 * outbound script lets nothing through, so that whatever the outside sees has got around it.
 */
let hosting: Hosting;
let outside: Outside;
let secrets: string;

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => {
    response.setHeader("x-selvedge-error", "forged");
    response.setHeader("x-selvedge-outcome", "forged");
    response.end(JSON.stringify(request.headers));
  });
  secrets = await hosting.createKv("secrets", { password: "of the victim" });
  await hosting.createNamespace("prison");
  await hosting.deploy("wall", `export default { fetch: () => new Response("walled", { status: 403 }) };`);
  await hosting.deploy("dispatcher", {
    code: `export default { async fetch(request, env) {
      const [, name] = new URL(request.url).pathname.split("/");
      const options = { limits: { cpuMs: 50, subRequests: 5 }, outbound: { customer: name } };
      try { return await env.NS.get(name, {}, options).fetch(request); } catch (error) { return new Response("thrown: " + error.message, { status: 500 }); }
    } };`,
    bindings: [
      {
        type: "dispatch_namespace",
        name: "NS",
        namespace: "prison",
        outbound: { worker: { service: "wall" } },
      },
      { type: "kv_namespace", name: "SECRETS", namespace_id: secrets },
    ],
  });
  await hosting.deployCustomer("prison", "victim", {
    code: `globalThis.ofVictim = "global"; Array.prototype.ofVictim = "prototype";
      export default { async fetch(request, env) { return Response.json([await env.SECRETS.get("password"), typeof ofHostile, typeof [].ofHostile]); } };`,
    bindings: [{ type: "kv_namespace", name: "SECRETS", namespace_id: secrets }],
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});
beforeEach(() => {
  outside.seen.length = 0;
});

const innocent = async (): Promise<unknown> => JSON.parse((await hosting.ask("dispatcher", "/victim")).body);
const unharmed = ["of the victim", "undefined", "undefined"];

/** What a hostile customer's code comes to. */
async function hostile(body: string, more: Partial<ScriptUpload> & { top?: string } = {}): Promise<unknown> {
  const { top = "", code, ...upload } = more;
  const main = `${top}
    export default { async fetch(request, env, ctx) {
      const run = async () => { ${body} };
      let value, thrown;
      try { value = await run(); } catch (error) { thrown = error.message; }
      return new Response('{"value":' + (toJson(value) ?? null) + ',"thrown":' + toJson(String(thrown)) + "}");
    } };`;
  const first = "const toJson = JSON.stringify;\n";
  await hosting.deployCustomer("prison", "hostile", {
    ...upload,
    code: { "index.js": first + main.replaceAll("OUTSIDE", outside.url), ...(code as object | undefined) },
  });
  const visit = await hosting.ask("dispatcher", "/hostile");
  if (visit.status !== 200) return visit.body;
  const { value, thrown } = JSON.parse(visit.body) as { value: unknown; thrown: string };
  return thrown === "undefined" ? value : `thrown: ${thrown}`;
}

describe("addresses", () => {
  const metadata = "169.254.169.254";
  let listener: Server | undefined;
  let reached = 0;
  let strict: Hosting;
  beforeAll(async () => {
    strict = await startHosting();
    // A leak would end on this machine, and be seen, rather than leave it.
    try {
      if (
        !Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === metadata))
      )
        execFileSync("ip", ["addr", "add", `${metadata}/32`, "dev", "lo"], { stdio: "ignore" });
    } catch {
      return; // only root may; then the refusal alone is what is seen
    }
    listener = createServer((_request, response) => {
      reached++;
      response.end("role credentials");
    });
    await new Promise<void>((resolve) => listener!.listen(80, metadata, resolve));
  });
  afterAll(async () => {
    listener?.close();
    if (listener !== undefined) execFileSync("ip", ["addr", "del", `${metadata}/32`, "dev", "lo"]);
    await strict.close(0);
  });

  const fetched = async (platform: Hosting, url: string): Promise<unknown> => {
    await platform.deploy(
      "reaching",
      `export default { async fetch() {
        try { const answer = await fetch(${JSON.stringify(url)}, { headers: { authorization: "Bearer owner-token-for-tests" } }); return new Response("reached " + answer.status); }
        catch (error) { return new Response("refused"); }
      } };`,
    );
    return (await platform.ask("reaching")).body;
  };

  test.each([
    `http://${metadata}/latest/meta-data/`,
    "http://2852039166/latest/meta-data/",
    "http://0xa9.0xfe.0xa9.0xfe/",
    `http://[::ffff:${metadata}]/`,
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://127.0.0.1:22/",
    "http://localhost/",
    "http://0/",
    "http://[::1]/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://100.100.100.200/",
    "http://[fd00:ec2::254]/",
    "http://nothing.workers.localhost/",
    "file:///etc/passwd",
    "unix:/run/front.sock",
    "blob:http://x/y",
  ])("%s is not reached", async (url) => {
    expect(await fetched(strict, url)).toBe("refused");
    expect(reached).toBe(0);
  });

  test("the API and the DNS listener are not reached, even where private addresses are", async () => {
    const api = new URL(hosting.ready.api);
    const dns = new URL(`http://${hosting.ready.dns}`);
    for (const host of ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]"]) {
      expect(await fetched(hosting, `http://${host}:${api.port}/client/v4/user/tokens/verify`)).toBe(
        "refused",
      );
      expect(await fetched(hosting, `http://${host}:${dns.port}/`)).toBe("refused");
    }
    expect(await fetched(hosting, outside.url)).toBe("reached 200");
  });

  test("what is meant for the front only is an address like any other", async () => {
    for (const url of [
      "http://front/script/x",
      "http://front/nested",
      "http://front/",
      "http://cell/unload",
      "http://cell/",
      "http://binding/value?key=password",
    ])
      expect(await hostile(`return (await fetch(${JSON.stringify(url)})).status`)).toBe(403);
    await hosting.deploy(
      "asking-the-front",
      `export default { async fetch() {
        const said = [];
        for (const path of ["script/" + encodeURIComponent("x"), "nested"])
          said.push(await fetch("http://front/" + path, { headers: { "x-selvedge-outcome": "guess" } }).then(({ status }) => status, () => "refused"));
        return Response.json(said);
      } };`,
    );
    expect(JSON.parse((await hosting.ask("asking-the-front")).body)).toEqual(["refused", "refused"]);
  });
});

describe("what is said between the front and its cells", () => {
  const forged = [
    "x-selvedge-run",
    "x-selvedge-script",
    "x-selvedge-binding",
    "x-selvedge-dispatch",
    "x-selvedge-entrypoint",
    "x-selvedge-event",
    "x-selvedge-params",
    "x-selvedge-pass",
    "x-selvedge-cf",
    "x-selvedge-outcome",
    "x-selvedge-lane",
    "x-selvedge-tail",
    "X-Selvedge-Error",
  ];

  test("cannot be said by visitors, nor be heard by scripts", async () => {
    await hosting.deploy(
      "hearing",
      `export default { fetch: ({ headers, cf }) => Response.json([[...headers.keys()].filter((name) => name.includes("selvedge")), cf.colo]) };`,
    );
    const headers = Object.fromEntries(forged.map((name) => [name, '{"colo":"forged"}']));
    const { status, body } = await hosting.ask("hearing", "/", { headers });
    expect([status, body]).toEqual([200, '[[],"DEV"]']);
    expect(
      await hostile(`return [...request.headers.keys()].filter((name) => name.includes("selvedge"))`),
    ).toEqual([]);
  });

  test("cannot be said by scripts to another script's bindings", async () => {
    const headers = JSON.stringify(Object.fromEntries(forged.map((name) => [name, "SECRETS"])));
    expect(
      await hostile(
        `return (await fetch("http://binding/value?key=password", { headers: ${headers} })).status`,
      ),
    ).toBe(403);
    expect(
      await hostile(
        `return (await fetch("http://x/", { headers: { "x-selvedge-binding": "SECRETS" } })).text()`,
      ),
    ).toBe("walled");
  });

  test("cannot be said by the outside, and does not go there", async () => {
    await hosting.deploy("asking", `export default { fetch: () => fetch("${outside.url}") };`);
    const { status, body, headers } = await hosting.ask("asking");
    expect(status).toBe(200);
    expect(body + JSON.stringify(headers)).not.toContain("selvedge-");
  });

  test("does not go out with what a dispatched script asks for", async () => {
    await hosting.createNamespace("unwalled");
    await hosting.deployCustomer(
      "unwalled",
      "customer",
      `export default { async fetch(request) {
        const own = { "x-selvedge-outcome": "forged", "x-selvedge-control": "forged", "x-selvedge-child": "forged", "x-selvedge-run": "forged" };
        const said = [...request.headers.keys()].filter((name) => name.includes("selvedge"));
        const plain = await (await fetch("${outside.url}/plain", { headers: own })).json();
        const posted = await (await fetch("${outside.url}/posted", { method: "POST", body: "x" })).json();
        return Response.json([said, plain, posted]);
      } };`,
    );
    await hosting.deploy("to-unwalled", {
      code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "unwalled" }],
    });
    // Once the way to it is known inside the cell, and before.
    for (let i = 0; i < 3; i++) {
      const { status, body } = await hosting.ask("to-unwalled");
      expect(status, body).toBe(200);
      expect(body).toContain('[[],{"host"');
      expect(body).not.toContain("selvedge");
    }
  });

  test("cannot be said by a script's answer", async () => {
    const all = JSON.stringify(Object.fromEntries(forged.map((name) => [name, "forged"])));
    await hosting.deployCustomer(
      "prison",
      "hostile",
      `export default { fetch: () => new Response("mine", { headers: ${all} }) };`,
    );
    const visit = await hosting.ask("dispatcher", "/hostile");
    expect(visit).toMatchObject({ status: 200, body: "mine" });
    expect(JSON.stringify(visit.headers)).not.toContain("selvedge-");
  });

  test("cannot be forged with the wrapper's own functions", async () => {
    const take = `const { passOn, forRun, currentRun, fetchThrough } = await import("__selvedge/cells/worker/run.js"); const none = "00000000-0000-4000-8000-000000000000"; `;
    const wrapped = async (body: string): Promise<unknown> => hostile(take + body);
    const refused = "thrown: This fetch belongs to no request that is being handled.";
    expect(await wrapped(`return (await forRun(none, () => fetch("OUTSIDE"))).status`)).toBe(refused);
    expect(await wrapped(`return (await forRun("", () => fetch("OUTSIDE"))).status`)).toBe(refused);
    expect(
      await wrapped(`return (await fetchThrough("SECRETS", "http://binding/value?key=password")).text()`),
    ).toBe("thrown: The script has no such binding.");
    expect(await wrapped(`return (await fetchThrough("NS", "http://x/")).text()`)).toBe(
      "thrown: The script has no such binding.",
    );
    expect(await wrapped(`return (await passOn(new Request(request.url))).status`)).toBe(
      "thrown: There is no origin here.",
    );
    expect(await wrapped(`return (await passOn(new Request("OUTSIDE"))).status`)).toBe(
      "thrown: There is no origin here.",
    );
    expect(outside.seen).toEqual([]);
  });

  test("a run is over when its request is, and is nobody else's", async () => {
    // One customer hands its run to another: it gets no further than with its own.
    const take = `const { currentRun, forRun } = await import("__selvedge/cells/worker/run.js");`;
    const run = await hostile(`${take} return currentRun()`);
    expect(run).toMatch(/^[\da-f-]{36}$/);
    await hosting.deploy(
      "accomplice",
      `export default { async fetch() {
        ${take}
        try { return await forRun(${JSON.stringify(run)}, () => fetch("${outside.url}")); } catch (error) { return new Response(error.message); }
      } };`,
    );
    expect((await hosting.ask("accomplice")).body).toBe(
      "This fetch belongs to no request that is being handled.",
    );
    expect(outside.seen).toEqual([]);
  });

  test("the wrapper's modules cannot be replaced", async () => {
    const code = `export const forRun = (token, handle) => handle(); export const currentRun = () => "x"; export class Control {}`;
    for (const name of ["cells/worker/run.js", "runtime/worker/script.js", "entry.js", "env.js"])
      await expect(hostile("return 1", { code: { [`__selvedge/${name}`]: code } })).rejects.toThrow(
        /Expected the path of a module/,
      );
  });
});

describe("the wrapper's natives cannot be replaced", () => {
  test.each([
    [
      "Function.prototype.call, apply and bind",
      `for (const name of ["call", "apply", "bind"]) Function.prototype[name] = function (...args) { return see(this, args); };`,
    ],
    [
      "Headers.prototype",
      `for (const name of ["get", "set", "has", "delete", "append"]) Headers.prototype[name] = function (...args) { see(args); };`,
    ],
    [
      "Headers.prototype, to keep what is forged",
      `Headers.prototype.delete = () => {}; Headers.prototype.set = () => {};`,
    ],
    [
      "Request and Response",
      `globalThis.Request = class extends Request { constructor(...args) { super(...args); see(args); } }; for (const name of ["headers", "url"]) Object.defineProperty(Request.prototype, name, { get() { see(name); return new Headers({ "x-selvedge-binding": "SECRETS" }); } });`,
    ],
    [
      "Promise",
      `const { then } = Promise.prototype; Promise.prototype.then = function (...args) { see(args); return then.apply(this, args); }; globalThis.Promise = class {};`,
    ],
    ["iterators of arrays", `Array.prototype[Symbol.iterator] = function* () { see([]); };`],
    [
      "Reflect and Proxy",
      `for (const name of ["apply", "construct", "get", "ownKeys"]) Reflect[name] = (...args) => see(args); globalThis.Proxy = class { constructor(target) { see(target); return target; } };`,
    ],
    ["JSON", `JSON.stringify = (value) => see(value) ?? "{}"; JSON.parse = () => ({});`],
    [
      "encodeURIComponent",
      `globalThis.encodeURIComponent = globalThis.decodeURIComponent = (text) => see(text) ?? "SECRETS";`,
    ],
    [
      "AsyncLocalStorage",
      `const { AsyncLocalStorage } = await import("node:async_hooks"); AsyncLocalStorage.prototype.run = function (store, call) { see(store); return call(); }; AsyncLocalStorage.prototype.getStore = () => "forged"; AsyncLocalStorage.snapshot = () => (call) => call();`,
    ],
    [
      "Object.prototype",
      `for (const name of ["x-selvedge-run", "run", "fetch", "headers", "props", "then", "get"]) try { Object.defineProperty(Object.prototype, name, { get() { return undefined; }, set(value) { see(value); }, configurable: true }); } catch {}`,
    ],
    [
      "maps and sets",
      `for (const { prototype } of [Map, Set, WeakMap, WeakSet]) for (const name of ["get", "set", "has", "add"]) if (name in prototype) prototype[name] = function (...args) { see(args); };`,
    ],
    [
      "Error",
      `Error.prepareStackTrace = (error, frames) => { for (const frame of frames) see([frame.getThis?.(), frame.getFunction?.()]); return ""; }; globalThis.Error = class { constructor(message) { see(message); this.message = message; } };`,
    ],
    ["event targets", `EventTarget.prototype.addEventListener = function (...args) { see(args); };`],
  ])("%s", async (_what, pollution) => {
    const top = `const seen = []; const see = (...what) => { seen.push(what); return undefined; }; const { fetch: kept, Request: NativeRequest } = globalThis;`;
    // Before any request, and again while one is handled.
    const body = `
      let answer; try { answer = await kept("OUTSIDE/first"); } catch {}
      let again; try { again = await fetch("OUTSIDE/again", { headers: { "x-selvedge-run": "forged", "x-selvedge-binding": "SECRETS" } }); } catch {}
      let secret; try { secret = await (await fetch("http://binding/value?key=password", { headers: { "x-selvedge-binding": "SECRETS" } })).text(); } catch {}
      return [answer?.status ?? 403, again?.status ?? 403, secret ?? "walled"];`;
    const said = await hostile(body, { top: top + pollution });
    // Whatever it broke, it broke for itself.
    if (Array.isArray(said)) expect(said).toEqual([403, 403, "walled"]);
    else expect(said).toMatch(/thrown|error/);
    expect(outside.seen).toEqual([]);
    expect(await innocent()).toEqual(unharmed);
  });
});

describe("framing", () => {
  test.each([
    ["a status text", `new Response("", { statusText: "OK\\r\\nx-split: yes" })`],
    ["a header's value", `new Response("", { headers: { a: "b\\r\\nx-split: yes" } })`],
    ["a header's name", `new Response("", { headers: { "a: b\\r\\nx-split": "yes" } })`],
    ["a method", `fetch("http://x/", { method: "GET / HTTP/1.1\\r\\nx-split: yes\\r\\n\\r\\nGET" })`],
    ["a request's header", `fetch("http://x/", { headers: { a: "b\\nx-split: yes" } })`],
    ["a protocol of a WebSocket", `new WebSocket("ws://x/", "chat\\r\\nx-split: yes")`],
  ])("cannot be broken with %s", async (_what, expression) => {
    expect(await hostile(`await ${expression}; return "made"`)).toMatch(/^thrown: /);
  });

  test("stays whole under headers that lie about it", async () => {
    const lies = [
      { "content-length": "1" },
      { "content-length": "1000" },
      { "transfer-encoding": "chunked", "content-length": "3" },
      { connection: "close, x-selvedge-run", upgrade: "h2c" },
      { trailer: "x-selvedge-outcome", te: "trailers" },
    ];
    for (const headers of lies) {
      for (const status of [200, 204, 304]) {
        const body =
          status === 200
            ? '"hello\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\ncontent-length: 4\\r\\n\\r\\nevil"'
            : "null";
        await hosting.deployCustomer(
          "prison",
          "hostile",
          `export default { fetch: () => new Response(${body}, { status: ${status}, headers: ${JSON.stringify(headers)} }) };`,
        );
        const [lied, ...others] = await Promise.all([
          hosting.ask("dispatcher", "/hostile"),
          ...Array.from({ length: 5 }, innocent),
        ]);
        expect([status, 500, 502, 520]).toContain(lied.status);
        expect(others).toEqual(others.map(() => unharmed));
      }
    }
    await hosting.deploy(
      "lying",
      `export default { async fetch() {
        const answer = await fetch("${outside.url}", { method: "POST", body: "abcdef", headers: { "content-length": "3", "transfer-encoding": "chunked", host: "evil.example", connection: "x-kept", "x-kept": "yes" } });
        return new Response(await answer.text());
      } };`,
    );
    expect(JSON.parse((await hosting.ask("lying")).body)).toMatchObject({
      host: new URL(outside.url).host,
      "content-length": "6",
    });
  });

  test("stays whole under huge headers", async () => {
    const huge = `"x-huge": "v".repeat(300_000)`;
    expect(await hostile(`return (await fetch("OUTSIDE", { headers: { ${huge} } })).status`)).toBe(431);
    await hosting.deployCustomer(
      "prison",
      "hostile",
      `export default { fetch: () => new Response("", { headers: { ${huge} } }) };`,
    );
    // They do not come out of the cell: the dispatcher passes them on, and its own answer is what fails.
    expect(await hosting.ask("dispatcher", "/hostile")).toMatchObject({ status: 500 });
    expect(
      await hostile(
        `const all = {}; for (let i = 0; i < 5000; i++) all["x-" + i] = "v"; return (await fetch("OUTSIDE", { headers: all })).status`,
      ),
    ).toBeTypeOf("number");
    expect(await innocent()).toEqual(unharmed);
    expect(outside.seen).toEqual([]);
  });
});

describe("customers share nothing", () => {
  test("no globals, no prototypes, no modules, no cache, no bindings", async () => {
    expect(await innocent()).toEqual(unharmed);
    const top = `globalThis.ofHostile = 1; Array.prototype.ofHostile = 1; export const shared = []; `;
    expect(
      await hostile(
        `const kept = await caches.open("shared").then(() => "opened", ({ message }) => message);
         return [typeof ofVictim, typeof [].ofVictim, Object.keys(env), await caches.default.put("http://x/", new Response("x")).then(() => "put", ({ message }) => message)];`,
        { top },
      ),
    ).toEqual(["undefined", "undefined", [], "No Cache was configured"]);
    expect(await innocent()).toEqual(unharmed);
  });

  test("customers of one name in two namespaces are two", async () => {
    await hosting.createNamespace("other-prison");
    await hosting.deployCustomer(
      "other-prison",
      "victim",
      `export default { fetch: (request, env) => Response.json([Object.keys(env), typeof ofVictim]) };`,
    );
    await hosting.deploy("other-dispatcher", {
      code: `export default { fetch: (request, env) => env.NS.get("victim").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "other-prison" }],
    });
    expect(JSON.parse((await hosting.ask("other-dispatcher")).body)).toEqual([[], "undefined"]);
  });

  test.each([
    "../other-prison/victim",
    "prison/victim",
    "victim\u0000",
    "VICTIM",
    "",
    "__proto__",
    "constructor",
    "victim%00",
    "script acc/prison/victim",
  ])("the name %j leads to no customer", async (name) => {
    await hosting.deploy("naming", {
      code: `export default { async fetch(request, env) {
          try { return await env.NS.get(${JSON.stringify(name)}).fetch(request); } catch (error) { return new Response(error.message); }
        } };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "prison" }],
    });
    expect((await hosting.ask("naming")).body).toBe("Worker not found.");
  });

  test.each([
    ["ends its isolate", `const { abortIsolate } = await import("cloudflare:workers"); abortIsolate("now")`],
    ["aborts its context", `ctx.abort("now")`],
    [
      "unloads itself",
      `const { exports } = await import("cloudflare:workers"); await exports.Control.fetch("http://x/unload")`,
    ],
    [
      "calls itself without end",
      `const { exports } = await import("cloudflare:workers"); return (await exports.Entry.fetch(request)).text()`,
    ],
    ["exits", `process.exit(1)`],
    ["spins in microtasks", `const loop = () => Promise.resolve().then(loop); await loop()`],
    ["matches for ever", `/^(a+)+$/.test("a".repeat(50) + "b")`],
    [
      "grows WebAssembly memory",
      `const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 }); for (;;) { memory.grow(16); new Uint8Array(memory.buffer).fill(1); }`,
    ],
    ["never stops fetching", `for (;;) await fetch("OUTSIDE").catch(() => {})`],
    ["recurses", `const deeper = () => deeper() + 1; return deeper()`],
  ])("one that %s harms itself only", async (_what, body) => {
    const [said, ...others] = await Promise.all([
      hostile(body, { metadata: { compatibility_flags: ["nodejs_compat"] } }),
      ...Array.from({ length: 10 }, innocent),
    ]);
    expect(said).toMatch(/thrown|error/);
    expect(others).toEqual(others.map(() => unharmed));
    expect(await innocent()).toEqual(unharmed);
  });
});

describe("the machine", () => {
  test.each([
    ["no file", `const fs = await import("node:fs"); return fs.readFileSync("/etc/passwd", "utf8")`],
    ["no process", `(await import("node:child_process")).execSync("id")`],
    ["no signal", `process.kill(1, 9)`],
    ["no thread", `const { Worker } = await import("node:worker_threads"); new Worker("1", { eval: true })`],
    ["no code from text", `return new Function("return 1")()`],
    ["no internals", `await import("cloudflare-internal:http")`],
    ["no unsafe modules", `await import("workerd:unsafe")`],
  ])("%s", async (_what, body) => {
    expect(await hostile(body, { metadata: { compatibility_flags: ["nodejs_compat"] } })).toMatch(
      /^thrown: /,
    );
  });

  test("no environment, no name of the host", async () => {
    expect(
      await hostile(
        `const os = await import("node:os"); return [Object.keys(process.env), os.networkInterfaces(), os.hostname()]`,
        {
          metadata: { compatibility_flags: ["nodejs_compat"] },
        },
      ),
    ).toEqual([[], {}, "localhost"]);
  });
});
