import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BindingTypeName } from "../../src/workers/bindings.ts";
import { startHosting, type Hosting } from "./platform.ts";
import { sendAssets } from "../scripts/harness.ts";

/** One binding of each type, enforced by the compiler. `class` is its visible class; undefined for a plain value. */
type Sample = { binding: Record<string, unknown>; className?: string; inProcess?: string };
let samples: Record<BindingTypeName, Sample>;
let hosting: Hosting;
let completionToken: string;

beforeAll(async () => {
  hosting = await startHosting();
  const library = `export default { fetch() { return new Response(); } };`;
  await hosting.deploy("library", library);
  await hosting.deploy("keeper", {
    code: `import { DurableObject } from "cloudflare:workers";
      export class Kept extends DurableObject {}
      ${library}`,
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Kept"] } },
  });
  await hosting.createNamespace("customers");
  await hosting.call("POST", `/accounts/${hosting.account}/queues`, { queue_name: "jobs" });
  const database = await hosting.call("POST", `/accounts/${hosting.account}/d1/database`, { name: "kept" });
  completionToken = await sendAssets(hosting, `/accounts/${hosting.account}/workers/scripts/looking`, {
    "/index.html": "an asset",
  });
  samples = {
    plain_text: { binding: { text: "plain" }, inProcess: "plain" },
    secret_text: { binding: { text: "hidden" }, inProcess: "hidden" },
    json: { binding: { json: { list: [1] } }, inProcess: '{"list":[1]}' },
    version_metadata: { binding: {}, inProcess: expect.stringMatching(/^\{"id":/) as string },
    kv_namespace: { binding: { namespace_id: await hosting.createKv("kept") }, className: "KvNamespace" },
    service: { binding: { service: "library" }, className: "Fetcher" },
    dispatch_namespace: { binding: { namespace: "customers" }, className: "DispatchNamespace" },
    assets: { binding: {}, className: "Fetcher" },
    d1: { binding: { id: database.body.result.uuid as string }, className: "D1Database" },
    queue: { binding: { queue_name: "jobs" }, className: "WorkerQueue" },
    workflow: { binding: { workflow_name: "flow", class_name: "Flow" }, className: "Workflow" },
    images: { binding: {}, className: "ImagesBinding" },
    durable_object_namespace: {
      binding: { class_name: "Kept", script_name: "keeper" },
      className: "DurableObjectNamespace",
    },
  };
});
afterAll(async () => hosting.close(0));

/** Operations that programs and libraries apply to any value without using it. */
const looking = `
  import { WorkflowEntrypoint, env as imported } from "cloudflare:workers";
  import { inspect, format, isDeepStrictEqual } from "node:util";
  import process from "node:process";
  export class Flow extends WorkflowEntrypoint { run() {} }
  const symbols = Object.getOwnPropertyNames(Symbol).map((name) => Symbol[name]).filter((each) => typeof each === "symbol");
  const looks = {
    ...Object.fromEntries(symbols.map((symbol) => ["value[" + String(symbol) + "]", (value) => value[symbol]])),
    then: (value) => typeof value.then,
    toJSON: (value) => typeof value.toJSON,
    constructor: (value) => value.constructor.name,
    names: (value) => ["idFromName", "default", "$$typeof", "nodeType", "asymmetricMatch", "inspect", "length", "__esModule"].map((name) => typeof value[name]),
    stringify: (value) => JSON.stringify({ value }),
    inspect: (value) => inspect(value, { showHidden: true, depth: 5, getters: true, showProxy: true }),
    format: (value) => format("%s %o %j %O", value, value, value, value),
    log: (value) => console.log(value),
    text: (value) => typeof value === "object" ? String(value) + value : "",
    number: (value) => Number(value),
    compare: (value) => [value == 5, value < 5, value === value, isDeepStrictEqual(value, {})],
    spread: (value) => Object.keys({ ...value }),
    assign: (value) => Object.assign({}, value),
    entries: (value) => Object.entries(value),
    ownKeys: (value) => typeof value === "object" ? Reflect.ownKeys(value).length : 0,
    descriptors: (value) => Object.getOwnPropertyDescriptors(value),
    iterate: (value) => { for (const name in Object(value)) String(name); },
    every: (value) => { for (let at = Object(value); at !== null; at = Object.getPrototypeOf(at)) for (const key of Reflect.ownKeys(at)) if (key !== "__proto__") typeof value[key]; },
    "own, in": (value) => typeof value === "object" && [Object.hasOwn(value, "x"), "x" in value, "then" in value],
    classes: (value) => [value instanceof Object, value instanceof Promise, Array.isArray(value), Error.isError?.(value)],
    state: (value) => [Object.isFrozen(value), Object.isExtensible(value), typeof value],
    clone: (value) => { try { structuredClone(value); return "cloned"; } catch (error) { return error.name + " " + error.message; } },
  };
  const late = { awaited: async (value) => (await value) === value, resolved: async (value) => (await Promise.resolve(value)) === value };
  function look(env) {
    const found = {};
    for (const [type, value] of Object.entries(env)) {
      found[type] = { faults: [] };
      for (const [name, see] of Object.entries(looks)) {
        try { found[type][name] = see(value); } catch (error) { found[type].faults.push(name + ": " + error); }
      }
    }
    return found;
  }
  const early = [look(imported), { ...process.env }, inspect(imported), JSON.stringify(imported)];
  const shown = (found) => Object.entries(found).map(([type, { faults, clone, spread, text, constructor }]) => [type, { faults, clone, spread, text, constructor }]);
  export default { async fetch(request, env) {
    const faults = [];
    for (const value of Object.values(env))
      for (const [name, see] of Object.entries(late)) if ((await see(value)) !== true) faults.push(name);
    return Response.json({
      early: Object.fromEntries(shown(early[0])), process: early[1], now: Object.fromEntries(shown(look(env))), faults,
      parts: [env.images.hosted, env.images.text, env.service.property, env.service.property.deeper].map((part) => [typeof part, JSON.stringify([part]), inspect(part), String(part), part[Symbol.iterator]]),
    });
  } };`;

interface Seen {
  faults: string[];
  clone: string;
  spread: string[];
  text: string;
  constructor: string;
}

describe.each([
  ["2025-04-01", ["nodejs_compat"]],
  ["2026-11-01", []],
])("with the date %s and the flags %j", (compatibility_date, compatibility_flags) => {
  test("no binding throws or is called when it is looked at", async () => {
    const bindings = Object.entries(samples).map(([type, { binding }]) => ({ type, name: type, ...binding }));
    await hosting.deploy("looking", {
      code: looking,
      bindings,
      metadata: { compatibility_date, compatibility_flags, assets: { jwt: completionToken } },
    });
    const { status, body } = await hosting.ask("looking", "/no-such-asset");
    expect(status, body).toBe(200);
    const seen = JSON.parse(body) as {
      early: Record<string, Seen>;
      now: Record<string, Seen>;
      process: Record<string, string>;
      faults: string[];
      parts: unknown[][];
    };
    for (const found of [seen.early, seen.now]) {
      expect(Object.keys(found).toSorted()).toEqual(Object.keys(samples).toSorted());
      for (const [type, { className }] of Object.entries(samples)) {
        expect(found[type]!.faults, type).toEqual([]);
        if (className === undefined) expect(found[type]!.clone, type).toBe("cloned");
        else
          expect(found[type], type).toMatchObject({
            clone: "DataCloneError #<Binding> could not be cloned.",
            spread: [],
            text: `[object ${className}][object ${className}]`,
            constructor: className,
          });
      }
    }
    expect(seen.faults).toEqual([]);
    expect(seen.process).toEqual(
      Object.fromEntries(
        Object.entries(samples).flatMap(([type, { inProcess }]) =>
          inProcess === undefined ? [] : [[type, inProcess]],
        ),
      ),
    );
    for (const part of seen.parts)
      expect(part).toEqual(["function", "[null]", expect.any(String), "[object RpcProperty]", null]);
  });
});
