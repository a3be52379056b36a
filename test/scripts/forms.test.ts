import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownerToken, startTestServer, type ApiResponse, type TestServer } from "../helpers/server.ts";
import { ask, esm, upload, type UploadPart } from "./harness.ts";

/** Uploads in the forms that real tools send, and the imports of each kind of module. */
let server: TestServer;
let scripts: string;
beforeAll(async () => {
  server = await startTestServer();
  scripts = `/accounts/${server.ready.account_id}/workers/scripts`;
});
afterAll(() => server.close(1000));

const code = 'export default { fetch: (_, env) => new Response("ran " + (env.A ?? "")) };';
const json = (metadata: object): string => JSON.stringify({ compatibility_date: "2026-01-01", ...metadata });
const bindings = [{ type: "plain_text", name: "A", text: "a" }];

async function putRaw(name: string, contentType: string, body: string): Promise<ApiResponse> {
  const response = await fetch(`${server.ready.api}${scripts}/${name}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${ownerToken}`, "content-type": contentType },
    body,
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as ApiResponse["body"],
  };
}

describe("metadata", () => {
  it.each<[form: string, parts: UploadPart[]]>([
    [
      "as curl sends it",
      [
        {
          name: "metadata",
          content: json({ main_module: "worker.mjs", bindings }),
          type: "application/json",
        },
        { name: "worker.mjs", filename: "worker.mjs", content: code, type: esm },
      ],
    ],
    [
      "after the code, as a file of no name",
      [
        { name: "worker.mjs", filename: "worker.mjs", content: code, type: esm },
        { name: "metadata", filename: "blob", content: json({ main_module: "worker.mjs", bindings }) },
      ],
    ],
    [
      "in brackets",
      [
        { name: "metadata[main_module]", content: "worker.mjs" },
        { name: "metadata[bindings][][type]", content: "plain_text" },
        { name: "metadata[bindings][][name]", content: "A" },
        { name: "metadata[bindings][][text]", content: "a" },
        { name: "files[]", filename: "worker.mjs", content: code, type: esm },
      ],
    ],
    [
      "with dots",
      [
        { name: "metadata.main_module", content: "worker.mjs" },
        { name: "metadata.bindings.0.type", content: "plain_text" },
        { name: "metadata.bindings.0.name", content: "A" },
        { name: "metadata.bindings.0.text", content: "a" },
        { name: "files", filename: "worker.mjs", content: code, type: esm },
      ],
    ],
    [
      "with a source map, and code of the older label",
      [
        { name: "metadata", content: json({ main_module: "worker.js", bindings }) },
        { name: "worker.js", filename: "worker.js", content: code, type: "application/javascript" },
        { name: "worker.js.map", filename: "worker.js.map", content: "{}", type: "application/source-map" },
      ],
    ],
  ])("%s", async (_form, parts) => {
    const answer = await upload(server, `${scripts}/formed`, parts);
    expect([answer.status, answer.body.errors]).toEqual([200, []]);
    expect((await ask(server, "formed")).body).toBe("ran a");
  });

  it("without a boundary in the content type, and as JSON", async () => {
    const form = [
      "--xyz",
      'Content-Disposition: form-data; name="metadata"',
      "",
      json({ main_module: "w.mjs", bindings }),
      "--xyz",
      'Content-Disposition: form-data; name="w.mjs"; filename="w.mjs"',
      `Content-Type: ${esm}`,
      "",
      code,
      "--xyz--",
      "",
    ].join("\r\n");
    expect((await putRaw("bare", "application/javascript", form)).body.errors).toEqual([]);
    expect((await ask(server, "bare")).body).toBe("ran a");
    const { body } = await putRaw("bare", "application/javascript", json({ metadata: { main_module: "w" } }));
    expect(body.errors).toMatchObject([
      { code: 10021, message: expect.stringContaining('No such module "w"') },
    ]);
    const plain = "addEventListener('fetch', (event) => event.respondWith(new Response('listened')))";
    expect((await putRaw("bare", "application/javascript", plain)).body.errors).toEqual([]);
    expect((await ask(server, "bare")).body).toBe("listened");
  });
});

it("modules of every kind are imported", async () => {
  const wasm = new Uint8Array([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100, 100, 0, 0,
    10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11,
  ]);
  const main = `
    import { helper } from "./lib/helper.mjs";
    import common from "./common.cjs";
    import text from "./text.txt";
    import data from "./data.bin";
    import json from "./data.json";
    import add from "./add.wasm";
    import { env } from "cloudflare:workers";
    const { exports } = new WebAssembly.Instance(add);
    export default {
      fetch: async () => Response.json({
        helper: helper(), common: common.answer, text, data: [...new Uint8Array(data)], json, add: exports.add(2, 3),
        global: env.A, dynamic: (await import("./lib/late.mjs")).default,
      }),
    };`;
  const answer = await upload(server, `${scripts}/kinds`, [
    { name: "metadata", content: json({ main_module: "main.mjs", bindings }) },
    { name: "main.mjs", filename: "main.mjs", content: main, type: esm },
    { name: "h", filename: "lib/helper.mjs", content: 'export const helper = () => "helper";', type: esm },
    {
      name: "l",
      filename: "lib/late.mjs",
      content: 'export default "late";',
      type: "text/javascript+module",
    },
    {
      name: "c",
      filename: "common.cjs",
      content: "module.exports = { answer: 42 };",
      type: "text/javascript",
    },
    { name: "t", filename: "text.txt", content: "some text", type: "text/plain" },
    { name: "d", filename: "data.bin", content: new Uint8Array([0, 255]), type: "application/octet-stream" },
    { name: "j", filename: "data.json", content: '{"a":[1]}', type: "application/json" },
    { name: "w", filename: "add.wasm", content: wasm, type: "application/wasm" },
  ]);
  expect(answer.body.errors).toEqual([]);
  expect(JSON.parse((await ask(server, "kinds")).body)).toEqual({
    helper: "helper",
    common: 42,
    text: "some text",
    data: [0, 255],
    json: { a: [1] },
    add: 5,
    global: "a",
    dynamic: "late",
  });
  const response = await fetch(`${server.ready.api}${scripts}/kinds/content/v2`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  });
  expect(response.headers.get("cf-entrypoint")).toBe("main.mjs");
  const names = [...(await response.formData()).keys()];
  expect(names).toEqual([
    "main.mjs",
    "lib/helper.mjs",
    "lib/late.mjs",
    "common.cjs",
    "text.txt",
    "data.bin",
    "data.json",
    "add.wasm",
  ]);
});
