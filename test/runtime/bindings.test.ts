import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { uploadForm, startHosting, type Hosting } from "./platform.ts";
import { ownerToken } from "../helpers/server.ts";

let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
});
afterAll(async () => hosting.close(0));

const answerOf = async (script: string): Promise<unknown> => {
  const { status, body } = await hosting.ask(script);
  expect(status, body).toBe(200);
  return JSON.parse(body) as unknown;
};

describe("the env of a script", () => {
  test("has values, secrets, JSON and the version, also for modules that import it", async () => {
    await hosting.deploy("values", {
      code: {
        "index.js": `import { early } from "./early.js";
          import { env as imported } from "cloudflare:workers";
          export default { fetch(request, env) {
            const { TEXT, SECRET, SHAPE, VERSION } = env;
            return Response.json({ TEXT, SECRET, SHAPE, VERSION, early, imported: { ...imported }, keys: Object.keys(env).sort() });
          } };`,
        "early.js": `import { env } from "cloudflare:workers"; export const early = env.TEXT + env.SHAPE.list.length;`,
      },
      bindings: [
        { type: "plain_text", name: "TEXT", text: "plain" },
        { type: "secret_text", name: "SECRET", text: "hidden" },
        { type: "json", name: "SHAPE", json: { list: [1, 2], nothing: null } },
        { type: "version_metadata", name: "VERSION" },
      ],
      metadata: { annotations: { "workers/tag": "spring" } },
    });
    const values = {
      TEXT: "plain",
      SECRET: "hidden",
      SHAPE: { list: [1, 2], nothing: null },
      VERSION: { id: expect.stringMatching(/^[\da-f-]{36}$/), tag: "spring", timestamp: expect.any(String) },
    };
    expect(await answerOf("values")).toEqual({
      ...values,
      early: "plain2",
      imported: values,
      keys: ["SECRET", "SHAPE", "TEXT", "VERSION"],
    });
  });

  test("shows another version after a change of a secret", async () => {
    const code = `export default { fetch: (request, env) => Response.json([env.KEY, env.VERSION.id]) };`;
    await hosting.deploy("turning", {
      code,
      bindings: [
        { type: "version_metadata", name: "VERSION" },
        { type: "secret_text", name: "KEY", text: "one" },
      ],
    });
    const [first, firstId] = (await answerOf("turning")) as string[];
    await hosting.call("PUT", `/accounts/${hosting.account}/workers/scripts/turning/secrets`, {
      name: "KEY",
      text: "two",
      type: "secret_text",
    });
    const [second, secondId] = (await answerOf("turning")) as string[];
    expect([first, second]).toEqual(["one", "two"]);
    expect(secondId).not.toBe(firstId);
  });

  test("reads and writes key-value namespaces", async () => {
    const id = await hosting.createKv("settings", { greeting: "hello" });
    await hosting.deploy("keys", {
      code: `export default { async fetch(request, { KV }) {
        await KV.put("made", "here", { metadata: { by: "script" } });
        return Response.json({
          greeting: await KV.get("greeting"),
          made: await KV.getWithMetadata("made"),
          nothing: await KV.get("nothing"),
          names: (await KV.list()).keys.map(({ name }) => name),
        });
      } };`,
      bindings: [{ type: "kv_namespace", name: "KV", namespace_id: id }],
    });
    expect(await answerOf("keys")).toEqual({
      greeting: "hello",
      made: { value: "here", metadata: { by: "script" }, cacheStatus: null },
      nothing: null,
      names: ["greeting", "made"],
    });
    const { status } = await hosting.call(
      "GET",
      `/accounts/${hosting.account}/storage/kv/namespaces/${id}/metadata/made`,
    );
    expect(status).toBe(200);
  });

  test.each([
    [{ type: "d1", name: "DB", id: "x" }, /the D1 database "x", which does not exist on this account/],
    [
      { type: "durable_object_namespace", name: "DO", class_name: "X" },
      /^Cannot create binding for class 'X'/,
    ],
    [{ type: "r2_bucket", name: "FILES", bucket_name: "x" }, /"r2_bucket"/],
    [{ type: "hyperdrive", name: "H", id: "x" }, /"hyperdrive"/],
    [{ type: "service", name: "S", service: "nobody" }, /the script "nobody", which does not exist/],
    [{ type: "kv_namespace", name: "K", namespace_id: "a".repeat(32) }, /the KV namespace "a{32}"/],
    [{ type: "dispatch_namespace", name: "D", namespace: "none" }, /the dispatch namespace "none"/],
    [{ type: "plain_text", name: "T", text: "x", hidden: true }, /hidden/],
  ])("refuses what it cannot give: %j", async (binding, message) => {
    const response = await fetch(
      `${hosting.ready.api}/accounts/${hosting.account}/workers/scripts/unsupported`,
      {
        method: "PUT",
        headers: { authorization: `Bearer ${ownerToken}` },
        body: uploadForm({ code: "export default { fetch() {} };", bindings: [binding] }),
      },
    );
    expect(response.status).toBe(400);
    const { errors } = (await response.json()) as { errors: { message: string }[] };
    expect(errors[0]!.message).toMatch(message);
  });
});

describe("modules", () => {
  test("of every kind are there under their names", async () => {
    // (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
    const wasm = Buffer.from(
      "0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b",
      "hex",
    );
    await hosting.deploy("kinds", {
      code: {
        "index.js": `import text from "./note.txt";
          import data from "./bytes.bin";
          import json from "./table.json";
          import module from "./sum.wasm";
          import common from "./common.cjs";
          import { nested } from "./lib/nested.js";
          export default { async fetch() {
            const { exports } = await WebAssembly.instantiate(module);
            const { late } = await import("./lib/late.js");
            return Response.json({ text, data: [...new Uint8Array(data)], json, sum: exports.add(20, 22), common: common.answer(), nested, late });
          } };`,
        "note.txt": "a note\n",
        "bytes.bin": Uint8Array.of(0, 255, 10, 13),
        "table.json": '{"rows":[1,2]}',
        "sum.wasm": wasm,
        "common.cjs": `const { word } = require("./word.cjs"); module.exports = { answer: () => word };`,
        "word.cjs": `exports.word = "from CommonJS";`,
        "lib/nested.js": `export { nested } from "./deeper.js";`,
        "lib/deeper.js": `export const nested = "deep";`,
        "lib/late.js": `export const late = "late";`,
      },
    });
    expect(await answerOf("kinds")).toEqual({
      text: "a note\n",
      data: [0, 255, 10, 13],
      json: { rows: [1, 2] },
      sum: 42,
      common: "from CommonJS",
      nested: "deep",
      late: "late",
    });
  });

  test("see the requested flags and compatibility date", async () => {
    const code = `import process from "node:process"; import { Buffer } from "node:buffer";
      export default { fetch: (request, env) => Response.json([process.env.TEXT, Buffer.from("x").toString("hex"), globalThis.Buffer === Buffer]) };`;
    const bindings = [{ type: "plain_text", name: "TEXT", text: "in the process" }];
    await hosting.deploy("node", { code, bindings, metadata: { compatibility_flags: ["nodejs_compat"] } });
    expect(await answerOf("node")).toEqual(["in the process", "78", true]);
    await hosting.deploy("old", {
      code: `export default { fetch: () => Response.json([typeof process, typeof navigator]) };`,
      metadata: { compatibility_date: "2021-11-02" },
    });
    expect(await answerOf("old")).toEqual(["undefined", "undefined"]);
  });
});

describe("a default export", () => {
  test("may be an object whose handlers use this", async () => {
    await hosting.deploy(
      "self",
      `export default { word: "own", fetch() { return Response.json(this.word); } };`,
    );
    expect(await answerOf("self")).toBe("own");
  });

  test("may be a class, with its env, context and helpers", async () => {
    await hosting.deploy("class", {
      code: `import { WorkerEntrypoint } from "cloudflare:workers";
        class Base extends WorkerEntrypoint { greet(name) { return this.env.TEXT + " " + name; } }
        export default class extends Base {
          #word = "private";
          constructor(ctx, env) { super(ctx, env); this.made = env.TEXT; }
          async fetch(request) {
            this.ctx.waitUntil(Promise.resolve());
            return Response.json([this.greet("you"), this.#word, this.made, this.ctx.props, request.method]);
          }
        }`,
      bindings: [{ type: "plain_text", name: "TEXT", text: "hello" }],
    });
    expect(await answerOf("class")).toEqual(["hello you", "private", "hello", {}, "GET"]);
  });
});
