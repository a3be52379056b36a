import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  ownerToken,
  startTestServer,
  type ApiResponse,
  type TestServer,
} from "../../../test/helpers/server.ts";

const handler = "export default { async fetch(request) { return fetch(request); } };";
let server: TestServer;
let zone: string;
let zones = 0;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close(1000));
beforeEach(async () => {
  const made = await server.call("POST", "/zones", { name: `snippets-${zones++}.example` });
  zone = `/zones/${(made.body.result as { id: string }).id}`;
});

interface Files {
  [name: string]: string | Uint8Array<ArrayBuffer>;
}
async function upload(
  name: string,
  files: Files,
  metadata: unknown = { main_module: "main.js" },
  type = "application/javascript+module",
): Promise<ApiResponse> {
  const form = new FormData();
  form.append("metadata", JSON.stringify(metadata));
  for (const [file, content] of Object.entries(files))
    form.append("files", new File([content], file, { type }));
  return send(name, form);
}
async function send(name: string, form: FormData): Promise<ApiResponse> {
  const response = await fetch(`${server.ready.api}${zone}/snippets/${name}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: form,
  });
  const body = (await response.json()) as ApiResponse["body"];
  return { status: response.status, headers: response.headers, body };
}
const put = (name: string, code = handler): Promise<ApiResponse> => upload(name, { "main.js": code });
const rules = (list: readonly object[]): Promise<ApiResponse> =>
  server.call("PUT", `${zone}/snippets/snippet_rules`, { rules: list });
const rule = (snippet_name: string, more: object = {}) => ({
  expression: "ssl",
  description: "",
  enabled: true,
  snippet_name,
  ...more,
});

it("creates, lists, replaces and deletes", async () => {
  const made = await put("b_2");
  expect(made.status).toBe(200);
  expect(Object.keys(made.body.result)).toEqual(["snippet_name", "created_on", "modified_on"]);
  await put("a");
  const list = await server.call("GET", `${zone}/snippets`);
  expect(list.body.result.map((each: { snippet_name: string }) => each.snippet_name)).toEqual(["a", "b_2"]);
  expect(list.body.result_info).toMatchObject({ page: 1, per_page: 25, count: 2, total_count: 2 });
  const again = await put("b_2", `${handler}\n`);
  expect(again.body.result.created_on).toBe(made.body.result.created_on);
  const one = await server.call("GET", `${zone}/snippets/b_2`);
  expect(one.body.result).toEqual(again.body.result);
  const gone = await server.call("DELETE", `${zone}/snippets/b_2`);
  expect([gone.status, gone.body.result]).toEqual([200, null]);
  expect((await server.call("GET", `${zone}/snippets/b_2`)).status).toBe(404);
});

it("returns the code unchanged", async () => {
  const files = { "main.js": `${handler} // ünïcode\r\n`, "notes/other.mjs": "export const a = 1;\n" };
  expect((await upload("code", files)).status).toBe(200);
  const response = await fetch(`${server.ready.api}${zone}/snippets/code/content`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  });
  expect(response.headers.get("content-type")).toMatch(/^multipart\/form-data; boundary=/);
  const form = await response.formData();
  const read = await Promise.all(
    [...form].map(async ([name, file]) => [
      name,
      (file as File).name,
      (file as File).type,
      await (file as File).text(),
    ]),
  );
  expect(read).toEqual(
    Object.entries(files).map(([name, content]) => [name, name, "application/javascript+module", content]),
  );
});

it.each<[client: string, metadata: [name: string, value: string | File], part: string, file: string]>([
  ["curl", ["metadata", '{"main_module":"main.js"}'], "files", "main.js"],
  ["the specification", ["metadata", '{"main_module":"main.js"}'], "code", "main.js"],
  ["the TypeScript client", ["metadata[main_module]", "main.js"], "files[]", "main.js"],
  [
    "the Go client",
    ["metadata", new File(['{"main_module":"main.js"}'], "", { type: "application/json" })],
    "files",
    "main.js",
  ],
  ["Terraform", ["metadata.main_module", "main.js"], "files", "main.js"],
])("accepts the form of %s", async (_client, [name, value], part, file) => {
  const form = new FormData();
  form.append(name, value);
  form.append(part, new File([handler], file));
  expect((await send("form", form)).status).toBe(200);
});

it.each<[what: string, files: Files, metadata: unknown, status: number, code: number, message: RegExp]>([
  [
    "a syntax error",
    { "main.js": "const a = 1;\nconst = ;" },
    undefined,
    400,
    12007,
    /^main\.js: line 2, column 7: SyntaxError/,
  ],
  [
    "an import",
    { "main.js": `import "x";\n${handler}` },
    undefined,
    400,
    12007,
    /line 1, column 1: import is not/,
  ],
  ["no default export", { "main.js": "const a = 1;" }, undefined, 400, 12007, /no default export/],
  ["no main module", { "main.js": handler }, {}, 400, 9207, /main_module, which is required/],
  [
    "an unknown main module",
    { "main.js": handler },
    { main_module: "x.js" },
    400,
    12008,
    /"x\.js"; the files are main\.js/,
  ],
  ["no file", {}, undefined, 400, 12008, /no file was uploaded/],
  [
    "unknown metadata",
    { "main.js": handler },
    { main_module: "main.js", bindings: [] },
    400,
    9207,
    /Unknown field "bindings"/,
  ],
  [
    "too much code",
    { "main.js": `${handler}//${"x".repeat(33_000)}` },
    undefined,
    400,
    12006,
    /at most 32768 bytes of code but received 33/,
  ],
  [
    "a file that is not text",
    { "main.js": new Uint8Array([0xff, 0xfe]) },
    undefined,
    400,
    12007,
    /expected UTF-8/,
  ],
  [
    "a strange file name",
    { 'ma"in.js': handler },
    { main_module: 'ma"in.js' },
    400,
    12007,
    /expected a file name/,
  ],
])("refuses %s", async (_what, files, metadata, status, code, message) => {
  const answer = await upload("refused", files, metadata);
  expect([answer.status, answer.body.errors[0]?.code]).toEqual([status, code]);
  expect(answer.body.errors[0]!.message).toMatch(message);
  expect((await server.call("GET", `${zone}/snippets/refused`)).status).toBe(404);
});

it("refuses modules of other kinds by their name", async () => {
  const answer = await upload(
    "wasm",
    { "main.wasm": "\0asm" },
    { main_module: "main.wasm" },
    "application/wasm",
  );
  expect(answer.body.errors[0]!.message).toBe(
    "main.wasm: expected a JavaScript module but received application/wasm",
  );
});

it("reports the faults of every file", async () => {
  const answer = await upload("two", { "main.js": "let", "other.js": 'import "x"' });
  expect(answer.body.errors.map((error) => error.source?.pointer)).toEqual([
    "/files/main.js",
    "/files/other.js",
  ]);
});

it.each(["Upper", "with-hyphen", "with.dot", "x".repeat(256)])("refuses the name %s", async (name) => {
  const answer = await put(name);
  expect([answer.status, answer.body.errors[0]?.code]).toEqual([400, 12003]);
});

it("enforces the limits of the plan", async () => {
  await server.call("PATCH", zone, { plan: { id: "free" } });
  expect((await put("one")).body.errors[0]).toMatchObject({ code: 12004 });
  await server.call("PATCH", zone, { plan: { id: "pro" } });
  const made = await Promise.all(Array.from({ length: 26 }, (_, i) => put(`s${i}`)));
  expect(made.filter(({ status }) => status === 200)).toHaveLength(25);
  expect(made.find(({ status }) => status !== 200)!.body.errors[0]).toMatchObject({ code: 12005 });
  const [first] = (await server.call("GET", `${zone}/snippets`)).body.result as { snippet_name: string }[];
  expect((await put(first!.snippet_name)).status).toBe(200);
});

it("keeps the order of rules, and the identity of each snippet's rule", async () => {
  for (const name of ["a", "b", "c"]) await put(name);
  const first = (
    await rules([rule("c"), rule("a"), rule("b", { enabled: undefined, description: undefined })])
  ).body.result;
  expect(first.map((each: { snippet_name: string }) => each.snippet_name)).toEqual(["c", "a", "b"]);
  expect(first[2]).toMatchObject({ enabled: false, description: "", version: "1" });
  expect(Object.keys(first[0])).toEqual([
    "id",
    "description",
    "enabled",
    "expression",
    "snippet_name",
    "last_updated",
    "version",
  ]);
  expect((await server.call("GET", `${zone}/snippets/snippet_rules`)).body.result).toEqual(first);
  const second = (await rules([first[1], { ...first[0], expression: "not ssl" }])).body.result;
  expect(second[0]).toEqual(first[1]);
  expect(second[1]).toMatchObject({ id: first[0].id, version: "2", expression: "not ssl" });
  const none = await server.call("DELETE", `${zone}/snippets/snippet_rules`);
  expect([none.status, none.body.result]).toEqual([200, []]);
  expect((await server.call("GET", `${zone}/snippets/snippet_rules`)).body.result).toEqual([]);
});

it("refuses rules with their index, and changes nothing", async () => {
  await put("a");
  await put("b");
  const before = (await rules([rule("a")])).body.result;
  const refusal = async (list: readonly object[]) => {
    const answer = await rules(list);
    expect(answer.status).toBe(400);
    return answer.body.errors.map((error) => [error.source?.pointer, error.message]);
  };
  expect(await refusal([rule("a"), rule("b", { expression: "ip.src in {1.2.3.4/24}" })])).toEqual([
    [
      "/body/rules/1/expression",
      expect.stringMatching(
        /^rules\[1\]\.expression: 'ip\.src in .* Filter parsing error \(1:12\):\nip\.src in .*\n {11}\^{7} /,
      ),
    ],
  ]);
  expect((await refusal([rule("b", { expression: "x" }), rule("a", { expression: "y" })])).length).toBe(2);
  expect(await refusal([rule("a"), rule("b"), rule("nobody")])).toEqual([
    [
      "/body/rules/2/snippet_name",
      'rules[2].snippet_name: expected a snippet of the zone but received "nobody"',
    ],
  ]);
  expect(await refusal([rule("a"), rule("b"), rule("a")])).toEqual([
    ["/body/rules/2/snippet_name", expect.stringContaining('"a" is in rules[0] already')],
  ]);
  expect(await refusal([rule("a", { enabled: "yes", colour: 1 })])).toHaveLength(2);
  expect((await server.call("GET", `${zone}/snippets/snippet_rules`)).body.result).toEqual(before);
});

it("does not delete a snippet with a rule, even a disabled one", async () => {
  await put("a");
  await rules([rule("a", { enabled: false })]);
  const refused = await server.call("DELETE", `${zone}/snippets/a`);
  expect([refused.status, refused.body.errors[0]!.message]).toEqual([
    400,
    expect.stringContaining("snippet is still used"),
  ]);
  await rules([]);
  expect((await server.call("DELETE", `${zone}/snippets/a`)).status).toBe(200);
});

it("reads and writes the same rules as the ruleset", async () => {
  const entrypoint = `${zone}/rulesets/phases/http_request_snippets/entrypoint`;
  expect((await server.call("GET", entrypoint)).body.errors[0]).toMatchObject({ code: 10003 });
  await put("a");
  await put("b");
  const [made] = (await rules([rule("a")])).body.result;
  const ruleset = (await server.call("GET", entrypoint)).body.result;
  expect(ruleset).toMatchObject({ phase: "http_request_snippets", kind: "zone", version: "1" });
  expect(ruleset.rules).toMatchObject([
    {
      id: made.id,
      action: "snippet",
      action_parameters: { snippet_name: "a" },
      snippet_name: "a",
      expression: "ssl",
    },
  ]);
  const more = { action: "snippet", expression: "not ssl", action_parameters: { snippet_name: "b" } };
  const changed = await server.call("PUT", entrypoint, { rules: [more, ...ruleset.rules] });
  expect(changed.status).toBe(200);
  const now = (await server.call("GET", `${zone}/snippets/snippet_rules`)).body.result;
  expect(now.map((each: { snippet_name: string }) => each.snippet_name)).toEqual(["b", "a"]);
  expect(now[1].id).toBe(made.id);

  const byId = `${zone}/rulesets/${ruleset.id}`;
  const unknown = { ...more, action_parameters: { snippet_name: "nobody" } };
  const expectRefusal = async (call: Promise<ApiResponse>, pointer: string): Promise<void> => {
    const answer = await call;
    expect([answer.status, answer.body.errors[0]!.source?.pointer]).toEqual([400, pointer]);
  };
  await expectRefusal(server.call("PUT", byId, { rules: [more, unknown] }), "/body/rules/1/snippet_name");
  await expectRefusal(server.call("POST", `${byId}/rules`, more), "/body/rules/2/snippet_name");
  await expectRefusal(
    server.call("PUT", entrypoint, { rules: [{ ...more, action: "route" }] }),
    "/body/rules/0/action",
  );
  await expectRefusal(
    server.call("PUT", entrypoint, { rules: [{ ...more, action_parameters: { name: "b" } }] }),
    "/body/rules/0/action_parameters/snippet_name",
  );
  await expectRefusal(
    server.call("PUT", entrypoint, { rules: [{ ...more, snippet_name: "a" }] }),
    "/body/rules/0/snippet_name",
  );
  expect((await server.call("DELETE", byId)).status).toBe(204);
  expect((await server.call("GET", `${zone}/snippets/snippet_rules`)).body.result).toEqual([]);
});

it("requires the permission of the phase", async () => {
  await put("a");
  await rules([rule("a")]);
  const list = (await server.call("GET", `${zone}/rulesets`)).body.result as { id: string }[];
  const tokenWith = async (group: string): Promise<string> => {
    const body = {
      name: group,
      policies: [
        {
          effect: "allow",
          resources: { "com.cloudflare.api.account.zone.*": "*" },
          permission_groups: [{ name: group }],
        },
      ],
    };
    return (await server.call("POST", "/user/tokens", body)).body.result.value as string;
  };
  const entrypoint = `${zone}/rulesets/phases/http_request_snippets/entrypoint`;
  const as = async (token: string, method: string, path: string, body?: object): Promise<ApiResponse> =>
    server.call(method, path, body, { authorization: `Bearer ${token}` });
  const snippets = await tokenWith("Snippets Read");
  expect((await as(snippets, "GET", entrypoint)).status).toBe(200);
  expect((await as(snippets, "PUT", entrypoint, { rules: [] })).status).toBe(403);
  const origin = await tokenWith("Origin Rules Write");
  expect((await as(origin, "GET", entrypoint)).status).toBe(403);
  expect((await as(origin, "GET", `${zone}/rulesets`)).body.result).toEqual([]);
  expect((await as(origin, "GET", `${zone}/rulesets/${list[0]!.id}`)).status).toBe(403);
  expect((await as(origin, "PUT", `${zone}/rulesets/${list[0]!.id}`, { rules: [] })).status).toBe(403);
  expect((await as(origin, "DELETE", `${zone}/rulesets/${list[0]!.id}`)).status).toBe(403);
});
