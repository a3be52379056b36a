import { afterAll, beforeAll, expect, it } from "vitest";
import {
  ownerToken,
  startTestServer,
  type ApiResponse,
  type TestServer,
} from "../../../test/helpers/server.ts";
import type { ApiError } from "./errors.ts";
import { expected } from "./if-match.ts";

let server: TestServer;
let zone: string;

beforeAll(async () => {
  server = await startTestServer();
  zone = `/zones/${await server.newZone("conditions.example")}`;
});
afterAll(() => server.close(1000));

/** Changes a resource twice with the tag of its first state, and then without a condition. */
async function changesOnce(
  change: (value: number, headers: Record<string, string>) => Promise<ApiResponse>,
  tag: string,
): Promise<void> {
  const first = await change(1, { "if-match": `"another", ${tag}` });
  expect(first.status).toBe(200);
  const second = await change(2, { "if-match": tag });
  expect([second.status, second.body.errors[0]!.code]).toEqual([412, 10412]);
  expect((await change(3, { "if-match": "*" })).status).toBe(200);
  expect((await change(4, {})).status).toBe(200);
}

it("refuses a change of a record that was changed meanwhile, in the same millisecond too", async () => {
  const body = { type: "A", name: "www", content: "192.0.2.1" };
  const made = await server.call("POST", `${zone}/dns_records`, body);
  const path = `${zone}/dns_records/${made.body.result.id}`;
  const etag = (await server.call("GET", path)).headers.get("etag")!;
  expect(etag).toBe(`"${made.body.result.modified_on}"`);
  const edit = (content: string, headers = {}): Promise<ApiResponse> =>
    server.call("PATCH", path, { content }, headers);
  await changesOnce((value, headers) => edit(`192.0.2.1${value}`, headers), etag);
  const quick = await Promise.all([1, 2, 3, 4, 5].map((value) => edit(`192.0.2.3${value}`)));
  const times = quick.map((answer) => answer.body.result.modified_on as string);
  expect(new Set(times).size).toBe(5);
  const put = await server.call("PUT", path, body, { "if-match": etag });
  const gone = await server.call("DELETE", path, undefined, { "if-match": etag });
  expect([put.status, gone.status]).toEqual([412, 412]);
  expect((await server.call("GET", path)).body.result.content).toMatch(/^192\.0\.2\.3/);
});

it("lets one of two changes through that know the same state", async () => {
  const made = await server.call("POST", `${zone}/dns_records`, { type: "TXT", name: "race", content: "0" });
  const path = `${zone}/dns_records/${made.body.result.id}`;
  const headers = { "if-match": `"${made.body.result.modified_on}"` };
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, value) => server.call("PATCH", path, { content: `by ${value}` }, headers)),
  );
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, ...Array(7).fill(412)]);
});

it("refuses changes of rules that were changed meanwhile: one rule, or all of a phase", async () => {
  const path = `${zone}/rulesets/phases/http_request_origin/entrypoint`;
  const rule = (port: number): object => ({
    action: "route",
    expression: "true",
    action_parameters: { origin: { port } },
  });
  const made = await server.call("PUT", path, { rules: [rule(80)] });
  const { id, rules } = made.body.result;
  const one = `${zone}/rulesets/${id}/rules/${rules[0].id}`;
  await changesOnce(
    (value, headers) => server.call("PATCH", one, rule(8000 + value), headers),
    `"${rules[0].version}"`,
  );
  expect((await server.call("DELETE", one, undefined, { "if-match": '"1"' })).status).toBe(412);
  const etag = (await server.call("GET", path)).headers.get("etag")!;
  await changesOnce(
    (value, headers) => server.call("PUT", path, { rules: [rule(9000 + value)] }, headers),
    etag,
  );
  expect(
    (await server.call("PUT", `${zone}/rulesets/${id}`, { rules: [] }, { "if-match": etag })).status,
  ).toBe(412);
});

it("refuses to replace or delete a ruleset that was changed, described or deleted meanwhile", async () => {
  const other = `/zones/${await server.newZone("described.example")}`;
  const path = `${other}/rulesets/phases/http_request_origin/entrypoint`;
  const put = (description: string, headers = {}): Promise<ApiResponse> =>
    server.call("PUT", path, { description, rules: [] }, headers);
  const absent = await put("first", { "if-match": "*" });
  expect([absent.status, absent.body.errors[0]!.code]).toEqual([412, 10412]);
  const made = await put("first");
  const etag = made.headers.get("etag")!;
  expect((await put("second", { "if-match": etag })).status).toBe(200);
  expect((await put("third", { "if-match": etag })).status).toBe(412);
  const one = `${other}/rulesets/${made.body.result.id}`;
  expect((await server.call("DELETE", one, undefined, { "if-match": etag })).status).toBe(412);
  const now = (await server.call("GET", one)).headers.get("etag")!;
  expect((await server.call("GET", one)).body.result.description).toBe("second");
  const response = await fetch(`${server.ready.api}${one}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${ownerToken}`, "if-match": now },
  });
  expect(response.status).toBe(204);
  expect((await put("again", { "if-match": now })).status).toBe(412);
});

async function upload(method: string, path: string, value: number, headers = {}): Promise<ApiResponse> {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: "s.js" }));
  const code = `export default { fetch: () => new Response("${value}") };`;
  form.set("s.js", new File([code], "s.js", { type: "application/javascript+module" }));
  const init = { method, headers: { authorization: `Bearer ${ownerToken}`, ...headers }, body: form };
  const response = await fetch(`${server.ready.api}${path}`, init);
  return { status: response.status, headers: response.headers, body: await response.json() } as ApiResponse;
}
async function tagOfCode(path: string): Promise<string> {
  const headers = { authorization: `Bearer ${ownerToken}` };
  return (await fetch(`${server.ready.api}${path}`, { headers })).headers.get("etag")!;
}

it("refuses code of a snippet that was changed meanwhile", async () => {
  const path = `${zone}/snippets/edited`;
  expect((await upload("PUT", path, 0, { "if-match": "*" })).status).toBe(412);
  expect((await upload("PUT", path, 0)).status).toBe(200);
  const etag = await tagOfCode(`${path}/content`);
  await changesOnce(async (value, headers) => upload("PUT", path, value, headers), etag);
});

it("refuses schedules that were changed meanwhile, and keeps one of two changes made at once", async () => {
  const script = `/accounts/${server.ready.account_id}/workers/scripts/scheduled`;
  expect((await upload("PUT", script, 0)).status).toBe(200);
  const path = `${script}/schedules`;
  const put = async (value: number, headers = {}): Promise<ApiResponse> =>
    server.call("PUT", path, [{ cron: `${value} * * * *` }], headers);
  await changesOnce(put, (await server.call("GET", path)).headers.get("etag")!);
  await Promise.all([put(10), put(11)]);
  expect((await server.call("GET", path)).body.result.schedules).toHaveLength(1);
});

it("refuses snippet rules that were changed meanwhile", async () => {
  const path = `${zone}/snippets/snippet_rules`;
  expect((await upload("PUT", `${zone}/snippets/s`, 0)).status).toBe(200);
  const etag = (await server.call("GET", path)).headers.get("etag")!;
  const rules = (value: number): object => ({
    rules: [{ snippet_name: "s", expression: `http.host eq "${value}.example"` }],
  });
  await changesOnce((value, headers) => server.call("PUT", path, rules(value), headers), etag);
  expect((await server.call("DELETE", path, undefined, { "if-match": etag })).status).toBe(412);
});

it("refuses changes of code that was changed meanwhile, and of the code of divided requests", async () => {
  const path = `/accounts/${server.ready.account_id}/workers/scripts/s`;
  const send = async (method: string, to: string, value: number, headers = {}): Promise<ApiResponse> =>
    upload(method, `${path}${to}`, value, headers);
  const tag = async (): Promise<string> => tagOfCode(`${path}/content/v2`);
  expect((await send("PUT", "", 0)).status).toBe(200);
  await changesOnce(async (value, headers) => send("PUT", "/content", value, headers), await tag());
  // A newer version that is not deployed stays as it is.
  expect((await send("POST", "/versions", 5)).status).toBe(200);
  const live = await tag();
  expect((await send("PUT", "/content", 6, { "if-match": live })).status).toBe(200);
  expect((await send("PUT", "/content", 7, { "if-match": live })).status).toBe(412);
  const { items } = (await server.call("GET", `${path}/versions`)).body.result as { items: { id: string }[] };
  const versions = items.slice(0, 2).map(({ id }) => ({ version_id: id, percentage: 50 }));
  const split = { strategy: "percentage", versions };
  expect((await server.call("POST", `${path}/deployments`, split)).status).toBe(200);
  const divided = await send("PUT", "/content", 8, { "if-match": await tag() });
  expect([divided.status, divided.body.errors[0]!.code]).toEqual([400, 10215]);
});

it("refuses a malformed condition, and one that an operation does not know", async () => {
  const record = { type: "A", name: "other", content: "192.0.2.1" };
  const unknown = await server.call("POST", `${zone}/dns_records`, record, { "if-match": '"1"' });
  expect([unknown.status, unknown.body.errors[0]!.code]).toEqual([400, 10413]);
  const made = await server.call("POST", `${zone}/dns_records`, record, { "if-match": "*" });
  expect(made.status).toBe(200);
  const path = `${zone}/dns_records/${made.body.result.id}`;
  const malformed = await server.call("PATCH", path, { content: "192.0.2.2" }, { "if-match": "1" });
  expect([malformed.status, malformed.body.errors[0]!.code]).toEqual([400, 9207]);
});

it.each([
  ['"now"', "accepted"],
  [' , "a,b" ,, "",\t"now" ,', "accepted"],
  [`${'"old", '.repeat(1000)}"now"`, "accepted"],
  ["*", "accepted"],
  ['W/"now"', 10412],
  ['"now,"', 10412],
  ["", 9207],
  [", ,", 9207],
  ['"now" "old"', 9207],
  ['"now"x', 9207],
  ['*, "now"', 9207],
  [`${" ".repeat(15_000)}x`, 9207],
])("reads the condition %j", (condition, outcome) => {
  const checked = (): unknown => {
    try {
      expected({ headers: { "if-match": condition } })("now");
      return "accepted";
    } catch (error) {
      return (error as ApiError).code;
    }
  };
  expect(checked()).toBe(outcome);
});
