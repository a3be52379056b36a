import { describe, expect, test } from "vitest";
import { unharmed, usePrison } from "./prison.ts";

const prison = usePrison();

describe("customers share nothing", () => {
  test("no globals, no prototypes, no modules, no cache, no bindings", async () => {
    expect(await prison.innocent()).toEqual(unharmed);
    const top = `globalThis.ofHostile = 1; Array.prototype.ofHostile = 1; export const shared = []; `;
    expect(
      await prison.hostile(
        `const kept = await caches.open("shared").then(() => "opened", ({ message }) => message);
         return [typeof ofVictim, typeof [].ofVictim, Object.keys(env), await caches.default.put("http://x/", new Response("x")), await caches.default.match("http://x/")];`,
        { top },
      ),
    ).toEqual(["undefined", "undefined", [], null, null]);
    expect(await prison.innocent()).toEqual(unharmed);
  });

  test("customers of one name in two namespaces are two", async () => {
    await prison.hosting.createNamespace("other-prison");
    await prison.hosting.deployCustomer(
      "other-prison",
      "victim",
      `export default { fetch: (request, env) => Response.json([Object.keys(env), typeof ofVictim]) };`,
    );
    await prison.hosting.deploy("other-dispatcher", {
      code: `export default { fetch: (request, env) => env.NS.get("victim").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "other-prison" }],
    });
    expect(JSON.parse((await prison.hosting.ask("other-dispatcher")).body)).toEqual([[], "undefined"]);
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
    await prison.hosting.deploy("naming", {
      code: `export default { async fetch(request, env) {
          try { return await env.NS.get(${JSON.stringify(name)}).fetch(request); } catch (error) { return new Response(error.message); }
        } };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "prison" }],
    });
    expect((await prison.hosting.ask("naming")).body).toBe("Worker not found.");
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
    const [results, ...others] = await Promise.all([
      prison.hostile(body, { metadata: { compatibility_flags: ["nodejs_compat"] } }),
      ...Array.from({ length: 10 }, () => prison.innocent()),
    ]);
    expect(results).toMatch(/thrown|error/);
    expect(others).toEqual(others.map(() => unharmed));
    expect(await prison.innocent()).toEqual(unharmed);
  });
});
