import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

let hosting: Hosting;
let outside: Outside;

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => response.end(request.url));
  await hosting.deploy("library", {
    code: `import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
      const outside = async (path) => (await fetch("${outside.url}" + path)).text();
      class Counter extends RpcTarget {
        #count;
        constructor(start) { super(); this.#count = start; }
        async add(by) { this.#count += by; await outside("/counted"); return this.#count; }
        get value() { return this.#count; }
        other() { return new Counter(100); }
      }
      export default class extends WorkerEntrypoint {
        async fetch(request) {
          const { method, url, cf } = request;
          return Response.json({ method, url, body: await request.text(), colo: cf?.colo, header: request.headers.get("x-header") });
        }
        async sum(a, b) { return a + b; }
        async look(path) { return outside(path); }
        counter(start) { return new Counter(start); }
        fail() { throw new RangeError("too far"); }
        stream(text) { return new Response(text).body; }
        call(callback) { return callback("called"); }
        kit() { return { when: new Date(5), map: new Map([[1, "one"]]), look: async () => outside("/kit"), list: [async () => outside("/listed")] }; }
        text() { return this.env.TEXT; }
      }
      export class Named extends WorkerEntrypoint {
        hello(name) { return "hello " + name; }
        fetch() { return new Response("a named class"); }
      }
      export const plain = { fetch() { return new Response("a named object"); } };`,
    bindings: [{ type: "plain_text", name: "TEXT", text: "of the library" }],
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

/** The value of an expression in a script with the bindings. */
async function evaluate(expression: string, setup = ""): Promise<unknown> {
  await hosting.deploy("caller", {
    code: `export default { async fetch(request, { LIBRARY, NAMED, PLAIN }) {
      try { ${setup} return Response.json({ value: await (${expression}) }); }
      catch (error) { return Response.json({ name: error.name, message: error.message }); }
    } };`,
    bindings: [
      { type: "service", name: "LIBRARY", service: "library" },
      { type: "service", name: "NAMED", service: "library", entrypoint: "Named" },
      { type: "service", name: "PLAIN", service: "library", entrypoint: "plain" },
    ],
  });
  const { status, body } = await hosting.ask("caller", "/path?a=1");
  expect(status, body).toBe(200);
  const answer = JSON.parse(body) as Record<string, unknown>;
  return "value" in answer ? answer["value"] : answer;
}

describe("a service binding", () => {
  test("passes requests on as they are", async () => {
    expect(
      await evaluate(
        `(await LIBRARY.fetch("https://any.example/x?y", { method: "POST", body: "sent", headers: { "x-header": "yes" } })).json()`,
      ),
    ).toEqual({ method: "POST", url: "https://any.example/x?y", body: "sent", colo: "DEV", header: "yes" });
    expect(await evaluate(`(await LIBRARY.fetch(request)).json()`)).toMatchObject({
      url: `http://${hosting.hostOf("caller")}/path?a=1`,
    });
  });

  test.each([
    ["a method", `LIBRARY.sum(1, 2)`, 3],
    ["a method that fetches", `LIBRARY.look("/looked")`, "/looked"],
    ["the callee's own env", `LIBRARY.text()`, "of the library"],
    ["a named entrypoint", `NAMED.hello("you")`, "hello you"],
    ["a named entrypoint's fetch", `(await NAMED.fetch("http://x/")).text()`, "a named class"],
    ["an exported object", `(await PLAIN.fetch("http://x/")).text()`, "a named object"],
    ["a stream", `new Response(await LIBRARY.stream("streamed")).text()`, "streamed"],
    ["a callback", `LIBRARY.call((word) => word + " back")`, "called back"],
    ["a callback that fetches", `LIBRARY.call(async () => (await fetch("OUTSIDE/back")).text())`, "/back"],
    [
      "dates and maps",
      `LIBRARY.kit().then(({ when, map }) => [when, map.get(1)])`,
      ["1970-01-01T00:00:00.005Z", "one"],
    ],
    [
      "functions that are returned",
      `LIBRARY.kit().then(async ({ look, list }) => [await look(), await list[0]()])`,
      ["/kit", "/listed"],
    ],
    [
      "objects with methods, properties and further objects",
      `LIBRARY.counter(5).then(async (c) => [await c.add(2), await c.add(3), await c.value, await (await c.other()).add(1)])`,
      [7, 10, 10, 101],
    ],
    ["calls on what is not there yet", `LIBRARY.counter(1).add(2)`, 3],
  ])("gives %s", async (_what, expression, value) => {
    expect(await evaluate(expression.replace("OUTSIDE", outside.url))).toEqual(value);
  });

  test("throws the other script's exception", async () => {
    expect(await evaluate(`LIBRARY.fail()`)).toEqual({ name: "RangeError", message: "too far" });
    expect(await evaluate(`LIBRARY.missing()`)).toMatchObject({
      name: "TypeError",
      message: expect.stringContaining('"missing"'),
    });
    await hosting.deploy(
      "library-that-throws",
      `export default { fetch() { throw new SyntaxError("odd"); } };`,
    );
    await hosting.deploy("caller-of-it", {
      code: `export default { async fetch(request, env) {
        try { return await env.SERVICE.fetch(request); } catch ({ name, message }) { return Response.json({ name, message }); }
      } };`,
      bindings: [{ type: "service", name: "SERVICE", service: "library-that-throws" }],
    });
    const { body } = await hosting.ask("caller-of-it");
    expect(JSON.parse(body)).toEqual({ name: "SyntaxError", message: "odd" });
  });

  test("may lead to the script itself from its first deployment on; calls without end are ended", async () => {
    const code = `export default { async fetch(request, env) {
      try { return await env.OTHER.fetch(request); } catch (error) { return new Response(error.message); }
    } };`;
    await hosting.deploy("ping", { code, bindings: [{ type: "service", name: "OTHER", service: "ping" }] });
    expect(await hosting.ask("ping")).toMatchObject({
      status: 200,
      body: "Too many scripts have called each other.",
    });
  });
});
