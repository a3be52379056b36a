import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

/** Calls and reads between scripts: properties, getters and methods of exported objects and classes. */
let hosting: Hosting;
let outside: Outside;

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => response.end(request.url));
  const ask = `const ask = async (path) => (await fetch("${outside.url}" + path)).text();`;
  await hosting.deploy("object", {
    code: `${ask}
      const shared = { of: "object" };
      export default {
        word: "honey",
        shared,
        list: [1, 2],
        nested: { word: "deep", twice(text) { return text + text + this.word; }, inner: { once: (text) => text }, fetch() { return "reserved"; } },
        get computed() { return this.word + "!"; },
        get fetched() { return ask("/getter"); },
        one(argument, env, ctx) { return [argument, env.TEXT, typeof ctx.waitUntil, JSON.stringify(ctx.props), arguments.length, this.word]; },
        none() { return arguments.length; },
        four(a, b, env, ctx) { return "never"; },
        arrow: (argument) => argument + 1,
        async asks(path) { return ask(path); },
        make() { return { bar: { buzz: (text) => ask("/" + text) } }; },
        fail() { throw new RangeError("too far"); },
        fetch() { return new Response("fetched"); },
        async scheduled({ cron }) { await ask("/scheduled?" + encodeURIComponent(cron)); },
      };
      export const named = { fetch() { return new Response(); }, word: "named", hello: (name) => "hello " + name };`,
    bindings: [{ type: "plain_text", name: "TEXT", text: "of the callee" }],
  });
  await hosting.deploy("class", {
    code: `import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
      ${ask}
      class Counter extends RpcTarget {
        #value = 0;
        increment(by) { return (this.#value += by); }
        get value() { return this.#value; }
      }
      class Base extends WorkerEntrypoint { get inherited() { return "of the base, " + this.env.TEXT; } }
      export default class extends Base {
        #honey = "private honey";
        own = "not shown";
        get honey() { return this.#honey; }
        get fetched() { return ask("/class-getter"); }
        get kit() { return { look: () => ask("/from-kit") }; }
        async newCounter() { return new Counter(); }
        many(...all) { return all; }
        fetch() { return new Response("fetched"); }
      }`,
    bindings: [{ type: "plain_text", name: "TEXT", text: "of the callee" }],
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

/** The result of a function body in a script with these bindings. */
async function run(body: string): Promise<unknown> {
  await hosting.deploy("caller", {
    code: `export default { async fetch(request, { OBJECT, NAMED, CLASS }) {
      const work = async () => { ${body} };
      return Response.json(await work().then((value) => ({ value: value === undefined ? "undefined" : value }), ({ name, message }) => ({ error: name + ": " + message })));
    } };`,
    bindings: [
      { type: "service", name: "OBJECT", service: "object" },
      { type: "service", name: "NAMED", service: "object", entrypoint: "named" },
      { type: "service", name: "CLASS", service: "class" },
    ],
  });
  const { status, body: answer } = await hosting.ask("caller");
  expect(status, answer).toBe(200);
  const { value, error } = JSON.parse(answer) as { value?: unknown; error?: string };
  return error ?? value;
}

const noMethod = (name: string): string =>
  `TypeError: The RPC receiver does not implement the method "${name}".`;

describe("of an exported object", () => {
  test.each([
    ["a property", `return OBJECT.word`, "honey"],
    ["a property, with then", `return OBJECT.word.then((word) => word.length)`, 5],
    ["an object", `return OBJECT.shared`, { of: "object" }],
    ["an array", `return OBJECT.list`, [1, 2]],
    ["a property of a property", `return OBJECT.nested.word`, "deep"],
    ["a method of a property", `return OBJECT.nested.twice("x")`, "xxdeep"],
    ["a method further down", `return OBJECT.nested.inner.once("x")`, "x"],
    ["a getter", `return OBJECT.computed`, "honey!"],
    ["a getter that fetches", `return OBJECT.fetched`, "/getter"],
    [
      "a method, with env and ctx",
      `return OBJECT.one("a")`,
      ["a", "of the callee", "function", "{}", 3, "honey"],
    ],
    ["a method without parameters", `return OBJECT.none("a")`, 3],
    ["an arrow function", `return OBJECT.arrow(1)`, 2],
    ["a method that fetches", `return OBJECT.asks("/asked")`, "/asked"],
    ["a method that is read first", `return (await OBJECT.arrow)(1)`, 2],
    [
      "calls on what is not there yet",
      `using made = OBJECT.make(0); return made.bar.buzz("buzzed")`,
      "/buzzed",
    ],
    ["a handler, as a method", `return OBJECT.scheduled({ cron: "* * * * *" })`, "undefined"],
    ["fetch", `return (await OBJECT.fetch("http://x/")).text()`, "fetched"],
    ["a named export", `return [await NAMED.word, await NAMED.hello("you")]`, ["named", "hello you"]],
    [
      "many at once",
      `return Promise.all([OBJECT.word, OBJECT.arrow(1), OBJECT.nested.word])`,
      ["honey", 2, "deep"],
    ],
    ["what it throws", `return OBJECT.fail(0)`, "RangeError: too far"],
    ["nothing that it has not", `return OBJECT.missing(0)`, noMethod("missing")],
    ["nothing below that", `return OBJECT.missing.deeper(0)`, noMethod("missing")],
    ["nothing that it inherits", `return OBJECT.nested.hasOwnProperty("x")`, false],
    ["no reserved method", `return OBJECT.nested.fetch("x")`, noMethod("nested.fetch")],
    ["no call of a value", `return OBJECT.word(0)`, `TypeError: "word" is not a function.`],
  ])("it gives %s", async (_what, body, value) => {
    expect(await run(body)).toEqual(value);
  });

  test.each([
    ["no argument", `return OBJECT.arrow()`, /^TypeError: "arrow" takes exactly one argument but received 0/],
    ["two arguments", `return OBJECT.arrow(1, 2)`, /^TypeError: "arrow" takes exactly one .* received 2/],
    ["more parameters", `return OBJECT.four(1)`, /^TypeError: "four" cannot be called by other scripts/],
  ])("it refuses calls with %s", async (_what, body, message) => {
    expect(await run(body)).toMatch(message);
  });
});

describe("of a class", () => {
  test.each([
    ["a getter with a private field", `return CLASS.honey`, "private honey"],
    ["an inherited getter", `return CLASS.inherited`, "of the base, of the callee"],
    ["a getter that fetches", `return CLASS.fetched`, "/class-getter"],
    ["functions out of a getter, which fetch", `return CLASS.kit.look()`, "/from-kit"],
    ["a method with any number of arguments", `return CLASS.many(1, 2, 3)`, [1, 2, 3]],
    [
      "state that stays with an object",
      `using counter = CLASS.newCounter(); await counter.increment(2); await counter.increment(3); return await counter.value`,
      5,
    ],
    ["no property of the instance", `return CLASS.own`, noMethod("own")],
    ["not its env", `return CLASS.env`, noMethod("env")],
    ["not its context", `return CLASS.ctx`, noMethod("ctx")],
  ])("it gives %s", async (_what, body, value) => {
    expect(await run(body)).toEqual(value);
  });
});

test("nothing is called before a property is called or awaited, and each time counts", async () => {
  const body = `
    const { word } = OBJECT;
    const kept = [word, OBJECT.fetched, OBJECT.missing, OBJECT.missing.deeper, JSON.stringify([OBJECT.fetched])];
    const first = kept.length;
    return [first, await word, await word];`;
  outside.seen.length = 0;
  expect(await run(body)).toEqual([5, "honey", "honey"]);
  expect(outside.seen).toEqual([]);
});

test("outside of a request nothing can be called", async () => {
  const code = `import { env } from "cloudflare:workers";
    let fault;
    try { env.OBJECT.word(0); } catch (error) { fault = error.message; }
    export default { fetch: () => Response.json([fault]) };`;
  await hosting.deploy("early", {
    code,
    bindings: [{ type: "service", name: "OBJECT", service: "object" }],
  });
  expect((await hosting.ask("early")).body).toBe(
    JSON.stringify(["Services can be called only while handling a request."]),
  );
});

test("a constructor may bind its methods and use setters", async () => {
  await hosting.deploy("binding-methods", {
    code: `import { WorkerEntrypoint } from "cloudflare:workers";
      export class Bound extends WorkerEntrypoint {
        #name = "";
        constructor(ctx, env) { super(ctx, env); this.greet = this.greet.bind(this); this.name = "bound"; }
        get name() { return this.#name; }
        set name(name) { this.#name = name; }
        greet(to) { return this.name + " says hello to " + to; }
        hello(to) { const { greet } = this; return greet(to); }
      }
      export default { async fetch(request, env) { return new Response(await env.BOUND.hello("you")); } };`,
    bindings: [{ type: "service", name: "BOUND", service: "binding-methods", entrypoint: "Bound" }],
  });
  expect((await hosting.ask("binding-methods")).body).toBe("bound says hello to you");
});
