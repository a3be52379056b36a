import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type ApiResponse, type TestServer } from "../helpers/server.ts";
import { ask, deploy, esm, upload } from "./harness.ts";

/** Refusals name the reason, and change nothing. */
let server: TestServer;
let account: string;
let scripts: string;
beforeAll(async () => {
  server = await startTestServer();
  account = `/accounts/${server.ready.account_id}`;
  scripts = `${account}/workers/scripts`;
  await deploy(server, "kept", 'export default { fetch: () => new Response("the first") };');
});
afterAll(() => server.close(1000));

const good = "export default { fetch: () => new Response() };";
async function put(
  metadata: object,
  code: string | undefined = good,
  path = `${scripts}/kept`,
): Promise<ApiResponse> {
  return upload(server, path, [
    { name: "metadata", content: JSON.stringify({ main_module: "m.mjs", ...metadata }) },
    { name: "m.mjs", filename: "m.mjs", content: code, type: esm },
  ]);
}
const expectRefused = (answer: ApiResponse, status: number, code: number, message: string): void => {
  expect([answer.status, answer.body.errors[0]]).toMatchObject([
    status,
    { code, message: expect.stringContaining(message) },
  ]);
};

describe("uploads", () => {
  it.each<[what: string, code: string, message: string]>([
    [
      "code that does not parse",
      "export default {\n  fetch( };",
      "Uncaught SyntaxError: Unexpected token at m.mjs:2:10",
    ],
    ["code without handlers", "export const a = 1;", "No event handlers were registered"],
    ["code that throws at the start", `throw new Error("no start"); ${good}`, "Uncaught Error: no start"],
    ["code that never gets done", `for (;;); ${good}`, "Script startup exceeded CPU time limit"],
    [
      "an import that leads nowhere",
      `import "./none.mjs"; ${good}`,
      'No such module "./none.mjs", imported from "m.mjs"',
    ],
  ])("%s", async (_what, code, message) => {
    expectRefused(await put({}, code), 400, 10021, message);
  });

  it.each<[what: string, metadata: object, code: number, message: string]>([
    ["no main module", { main_module: undefined }, 10021, "Expected the name of the entry module"],
    ["a main module that is not there", { main_module: "x.mjs" }, 10021, 'No such module "x.mjs"'],
    [
      "an ES module as a script that registers listeners",
      { main_module: undefined, body_part: "m.mjs" },
      10021,
      "an ES module is named by main_module",
    ],
    ["a date of the future", { compatibility_date: "2999-01-01" }, 9207, "a date that is not in the future"],
    ["a flag that does not exist", { compatibility_flags: ["nodejs_compt"] }, 10021, "nodejs_compt"],
    [
      "migrations for a class that is not exported",
      { migrations: { new_tag: "v1", steps: [{ new_sqlite_classes: ["Room"] }] } },
      10070,
      "Cannot apply new-class migration to class 'Room' that is not exported by script.",
    ],
    [
      "declarative classes of Durable Objects that are not exported",
      { exports: { Room: { type: "durable-object", storage: "sqlite" } } },
      100402,
      "[config_references_nonexistent_class] class 'Room'",
    ],
    ["containers", { containers: [{ class_name: "A" }] }, 10021, "Containers are not part of this"],
    [
      "tail consumers",
      { tail_consumers: [{ service: "x" }] },
      10021,
      "tail_consumers are not supported here",
    ],
    ["a CPU limit of nothing", { limits: { cpu_ms: 0 } }, 9207, "limits.cpu_ms"],
    ["an unknown limit", { limits: { memory: 1 } }, 9207, 'Unknown field "memory"'],
    ["a tag with a comma", { tags: ["a,b"] }, 9207, "tags.0"],
    ["too many tags", { tags: Array.from({ length: 11 }, String) }, 9207, "at most 10 items"],
    ["assets of no upload", { assets: { jwt: "no.such.token" } }, 10307, "Invalid"],
    ["assets that are not complete", { assets: {} }, 10021, "Expected the completion token"],
  ])("%s", async (_what, metadata, code, message) => {
    const answer = await put(metadata);
    expect(answer.body.errors[0]).toMatchObject({ code, message: expect.stringContaining(message) });
    expect(answer.body.success).toBe(false);
  });

  it.each<[what: string, binding: object, code: number, message: string]>([
    [
      "an unknown type",
      { type: "kv_namespce", name: "B" },
      10021,
      'type "kv_namespce", which is not supported here. Expected "kv_namespace"',
    ],
    [
      "a type that is not here",
      { type: "r2_bucket", name: "B", bucket_name: "x" },
      10021,
      'R2 is not part of this installation: the binding "B" has the type "r2_bucket"',
    ],
    [
      "a class without Durable Objects",
      { type: "durable_object_namespace", name: "B", class_name: "Room" },
      10061,
      "Cannot create binding for class 'Room' because it is not currently configured",
    ],
    ["a name of every object", { type: "constructor", name: "B" }, 10021, "is not supported here"],
    [
      "a name that is no identifier",
      { type: "plain_text", name: "a-b", text: "" },
      9207,
      "for name but received",
    ],
    [
      "an unknown field",
      { type: "plain_text", name: "B", text: "", colour: 1 },
      9207,
      'Unknown field "colour"',
    ],
    ["a missing field", { type: "kv_namespace", name: "B" }, 9207, "namespace_id"],
    [
      "a namespace that does not exist",
      { type: "kv_namespace", name: "B", namespace_id: "f" },
      10041,
      'the KV namespace "f", which does not exist',
    ],
    [
      "a script that does not exist",
      { type: "service", name: "B", service: "none" },
      10041,
      'the script "none", which does not exist',
    ],
    [
      "a dispatch namespace that does not exist",
      { type: "dispatch_namespace", name: "B", namespace: "none" },
      10041,
      'the dispatch namespace "none"',
    ],
    [
      "a queue that does not exist",
      { type: "queue", name: "B", queue_name: "none" },
      10041,
      'the queue "none"',
    ],
    [
      "a class that is not exported",
      { type: "workflow", name: "B", workflow_name: "w", class_name: "None" },
      10041,
      'the class "None"',
    ],
    ["assets without files", { type: "assets", name: "B" }, 10041, "static assets"],
    ["inheriting what is not there", { type: "inherit", name: "B" }, 10057, "cannot be inherited"],
  ])("a binding: %s", async (_what, binding, code, message) => {
    const answer = await put({ bindings: [binding] });
    expect([answer.status, answer.body.errors[0]]).toMatchObject([
      400,
      { code, message: expect.stringContaining(message) },
    ]);
  });

  it("reports all bindings to missing resources at once", async () => {
    const { body } = await put({
      bindings: [
        { type: "service", name: "A", service: "none" },
        { type: "kv_namespace", name: "B", namespace_id: "none" },
      ],
    });
    expect(body.errors.map(({ message }) => message)).toMatchObject([
      expect.stringContaining('"A"'),
      expect.stringContaining('"B"'),
    ]);
    const twice = { type: "plain_text", name: "A", text: "" };
    expectRefused(await put({ bindings: [twice, twice] }), 400, 10021, 'Two bindings have the name "A"');
  });

  it("modules whose content does not match their type", async () => {
    const parts = (name: string, content: string, type: string) => [
      { name: "metadata", content: '{"main_module":"m.mjs"}' },
      { name: "m.mjs", filename: "m.mjs", content: good, type: esm },
      { name, filename: name, content, type },
    ];
    const all = [
      ["a.json", "{", "application/json", 'Expected JSON in the module "a.json"'],
      ["a.wasm", "x", "application/wasm", 'Expected WebAssembly in the module "a.wasm"'],
      ["a.py", "x", "text/x-python", "text/x-python, which is not supported here"],
      ["__selvedge/entry.js", good, esm, "Expected the path of a module"],
      ["m.mjs", good, esm, 'Two modules have the name "m.mjs"'],
    ] as const;
    for (const [name, content, type, message] of all)
      expectRefused(await upload(server, `${scripts}/kept`, parts(name, content, type)), 400, 10021, message);
  });

  it("names that are no label of a host, and scripts that are too large", async () => {
    expectRefused(await put({}, good, `${scripts}/Not_A.Label`), 400, 10016, "Expected a script name of");
    const small = await startTestServer({ scriptBytesMax: 2000 });
    const path = `/accounts/${small.ready.account_id}/workers/scripts/large`;
    const code = `${good}//${"x".repeat(3000)}`;
    const answer = await upload(small, path, [
      { name: "metadata", content: '{"main_module":"m.mjs"}' },
      { name: "m.mjs", filename: "m.mjs", content: code, type: esm },
    ]);
    await small.close(1000);
    expectRefused(answer, 413, 10027, "The script is too large");
  });

  it("reports unknown fields of the metadata", async () => {
    const compatibility = { compatibility_date: "2026-01-01" };
    const asked = {
      ...compatibility,
      no_such_field: 1,
      placement: { mode: "smart" },
      observability: { enabled: false },
    };
    const { body } = await put(asked, good, `${scripts}/other`);
    expect(body.messages).toMatchObject([
      { message: expect.stringContaining("placement is kept, but changes nothing") },
      { message: expect.stringContaining('"no_such_field"') },
    ]);
    expect((await put({}, good, `${scripts}/other`)).body.messages).toMatchObject([
      { message: expect.stringContaining("no compatibility_date, so 2021-11-02 is used") },
    ]);
    expect((await put(compatibility, good, `${scripts}/other`)).body.messages).toEqual([]);
  });

  it("leave the deployed version unchanged when they are refused", async () => {
    expect((await ask(server, "kept")).body).toBe("the first");
  });
});

describe("missing resources", () => {
  it.each<[method: string, path: string, body: unknown, status: number, code: number]>([
    ["GET", "/workers/scripts/none", undefined, 404, 10007],
    ["GET", "/workers/scripts/none/settings", undefined, 404, 10007],
    ["GET", "/workers/services/none", undefined, 404, 10007],
    ["PUT", "/workers/scripts/none/secrets", { name: "A", text: "", type: "secret_text" }, 404, 10007],
    ["GET", "/workers/scripts/kept/secrets/NONE", undefined, 404, 10056],
    ["DELETE", "/workers/scripts/kept/secrets/NONE", undefined, 404, 10056],
    ["DELETE", "/workers/scripts/kept/tags/none", undefined, 404, 10096],
    ["GET", `/workers/scripts/kept/versions/${crypto.randomUUID()}`, undefined, 404, 10222],
    ["GET", "/edge/dispatch/namespaces/none", undefined, 404, 100119],
    ["GET", "/workers/dispatch/namespaces/none/scripts/x", undefined, 404, 100119],
    ["GET", "/workers/subdomains/nobody-has-it", undefined, 404, 10032],
  ])("%s %s", async (method, path, body, status, code) => {
    const answer = await server.call(method, `${account}${path}`, body);
    expect([answer.status, answer.body.errors[0]!.code]).toEqual([status, code]);
  });
});

describe("impossible changes are refused", () => {
  it("of secrets", async () => {
    const path = `${scripts}/kept/settings`;
    const settings = JSON.stringify({ bindings: [{ type: "plain_text", name: "TAKEN", text: "x" }] });
    await upload(server, path, [{ name: "settings", content: settings }], "PATCH");
    const secret = { name: "TAKEN", text: "", type: "secret_text" };
    expectRefused(await server.call("PUT", `${scripts}/kept/secrets`, secret), 400, 10053, "already in use");
    const key = { name: "K", text: "", type: "secret_key" };
    expectRefused(await server.call("PUT", `${scripts}/kept/secrets`, key), 400, 9207, '"secret_key"');
  });

  it("of deployments", async () => {
    const path = `${scripts}/kept/deployments`;
    const { result } = (await server.call("GET", path)).body;
    const { version_id } = result.deployments[0].versions[0] as { version_id: string };
    const of = (...versions: [string, number][]) => ({
      strategy: "percentage",
      versions: versions.map(([id, percentage]) => ({ version_id: id, percentage })),
    });
    expectRefused(await server.call("POST", path, of([version_id, 50])), 400, 10216, "add up to 100");
    expectRefused(
      await server.call("POST", path, of([version_id, 50], [version_id, 50])),
      400,
      10021,
      "two different versions",
    );
    expectRefused(
      await server.call("POST", path, of([crypto.randomUUID(), 100])),
      404,
      10222,
      "The script has no version",
    );
  });

  it("of routes and domains", async () => {
    const zone = (await server.call("POST", "/zones", { name: "refused.example" })).body.result.id as string;
    const routes = `/zones/${zone}/workers/routes`;
    const all = [
      ["other.example/*", 400, 10022, "a host within the zone refused.example"],
      ["refused.example/a*b", 400, 10022, "a * in the path only at its end"],
      ["a*.refused.example/", 400, 10022, "a host name, which may begin with *"],
      ["refused.example/?q", 400, 10022, "without a query"],
    ] as const;
    for (const [pattern, status, code, message] of all)
      expectRefused(await server.call("POST", routes, { pattern, script: "kept" }), status, code, message);
    const pattern = "refused.example/*";
    expectRefused(await server.call("POST", routes, { pattern, script: "none" }), 404, 10007, '"none"');
    await server.call("POST", routes, { pattern, script: "kept" });
    expectRefused(
      await server.call("POST", routes, { pattern, script: "kept" }),
      409,
      10020,
      "already exists",
    );

    const domains = `${account}/workers/domains`;
    const domain = { hostname: "www.elsewhere.example", service: "kept" };
    expectRefused(
      await server.call("PUT", domains, domain),
      400,
      100116,
      "a host name in a zone of this account",
    );
    const named = { ...domain, hostname: "www.refused.example", zone_id: "f".repeat(32) };
    expect((await server.call("PUT", domains, named)).status).toBe(404);
  });

  it("of namespaces", async () => {
    const base = `${account}/edge/dispatch/namespaces`;
    expectRefused(await server.call("POST", base, { name: "a/b" }), 400, 100121, "Expected a namespace name");
    await server.call("POST", base, { name: "taken" });
    await server.call("POST", base, { name: "other" });
    expectRefused(
      await server.call("PUT", `${base}/other`, { name: "taken" }),
      409,
      100120,
      "already exists",
    );
    const tags = await server.call("DELETE", `${base}/taken/scripts?tags=a`);
    expectRefused(tags, 400, 10098, "Expected tags as <tag>:yes or <tag>:no");
  });

  it("of values", async () => {
    const created = await server.call("POST", `${account}/storage/kv/namespaces`, { title: "t" });
    const base = `${account}/storage/kv/namespaces/${created.body.result.id}`;
    const long = "x".repeat(513);
    expectRefused(
      await server.call("PUT", `${base}/values/${long}`, "v"),
      400,
      10033,
      "Expected a key of 1 to 512",
    );
    expectRefused(
      await server.call("PUT", `${base}/values/a?expiration_ttl=5`, "v"),
      400,
      10020,
      "expiration_ttl",
    );
    expectRefused(await server.call("GET", `${base}/keys?cursor=zz.`), 400, 10044, "Expected a cursor");
    const pairs = [
      { key: "good", value: "" },
      { key: "bad", value: "", expiration_ttl: 1 },
    ];
    expectRefused(await server.call("PUT", `${base}/bulk`, pairs), 400, 10020, 'the key "bad"');
    const encoded = [
      { key: "good", value: "" },
      { key: "bad", value: "*", base64: true },
    ];
    expectRefused(await server.call("PUT", `${base}/bulk`, encoded), 400, 10051, 'the key "bad"');
    expect((await server.call("GET", `${base}/keys`)).body.result).toEqual([]);
    await server.call("PUT", `${base}/values/text`, "not json");
    const asJson = { keys: ["text"], type: "json" };
    expectRefused(await server.call("POST", `${base}/bulk/get`, asJson), 400, 10050, '"text" is not JSON');
    const form = await upload(server, `${base}/values/a`, [{ name: "metadata", content: "{}" }]);
    expectRefused(form, 400, 9207, "Expected a part value");
  });
});
