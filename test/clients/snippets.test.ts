import { NotFoundError, toFile, type Cloudflare } from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { botManagementOperations } from "../../src/edge/client-info/api.ts";
import { snippetOperations } from "../../src/products/snippets/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages snippets and parses every response. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let zone_id: string;

const code = "export default { async fetch(request) { return fetch(request); } };";
const metadata = { main_module: "main.js" };
const file = () => new File([code], "main.js", { type: "application/javascript+module" });

beforeAll(async () => {
  server = await startTestServer();
  ({ client, called } = recordingClient(server, operations));
  const zone = await client.zones.create({
    account: { id: server.ready.account_id },
    name: "snippets.example",
  });
  zone_id = zone.id;
});
afterAll(() => server.close(1000));

it.each<[form: string, body: () => Promise<object> | object]>([
  ["a list of files", () => ({ metadata, files: [file()] })],
  ["a file under its own name", () => ({ metadata, "main.js": file() })],
  ["a file without a type", async () => ({ metadata, files: [await toFile(Buffer.from(code), "main.js")] })],
  [
    "metadata as a file",
    () => ({
      metadata: new File([JSON.stringify(metadata)], "", { type: "application/json" }),
      files: [file()],
    }),
  ],
  ["metadata as text", () => ({ metadata: JSON.stringify(metadata), files: [file()] })],
])("uploads %s", async (_form, body) => {
  const made = await client.snippets.update("uploaded", { zone_id, ...(await body()) } as never);
  expect(made).toMatchObject({ snippet_name: "uploaded" });
  const content = await (await client.snippets.content.get("uploaded", { zone_id })).formData();
  expect(await Promise.all([...content.values()].map((part) => (part as File).text()))).toEqual([code]);
});

it("lists, gets and deletes", async () => {
  for (const name of ["one", "two"])
    await client.snippets.update(name, { zone_id, metadata, files: [file()] });
  const names = (await Array.fromAsync(client.snippets.list({ zone_id, per_page: 1 }))).map(
    (each) => each.snippet_name,
  );
  expect(names).toEqual(expect.arrayContaining(["one", "two"]));
  const one = await client.snippets.get("one", { zone_id });
  expect(one.modified_on! >= one.created_on).toBe(true);
  expect(await client.snippets.delete("one", { zone_id })).toBeNull();
  await expect(client.snippets.get("one", { zone_id })).rejects.toThrow(NotFoundError);
});

it("manages rules", async () => {
  await client.snippets.update("ruled", { zone_id, metadata, files: [file()] });
  const rule = { snippet_name: "ruled", expression: 'http.request.uri.path eq "/"', enabled: true };
  const made = await Array.fromAsync(client.snippets.rules.update({ zone_id, rules: [rule] }));
  expect(made).toMatchObject([{ ...rule, description: "", id: expect.stringMatching(/^[0-9a-f]{32}$/) }]);
  expect(await Array.fromAsync(client.snippets.rules.list({ zone_id }))).toEqual(made);
  expect(await Array.fromAsync(client.snippets.rules.get({ zone_id }))).toEqual(made);
  const phase = "http_request_snippets" as never; // not in the client's list of phases
  const ruleset = (await client.rulesets.phases.get(phase, { zone_id })) as unknown as {
    rules: { id: string }[];
  };
  expect(ruleset.rules.map(({ id }) => id)).toEqual([made[0]!.id]);
  await client.rulesets.phases.update(phase, { zone_id, rules: ruleset.rules });
  await expect(client.snippets.delete("ruled", { zone_id })).rejects.toThrow("snippet is still used");
  expect(await Array.fromAsync(client.snippets.rules.delete({ zone_id }))).toEqual([]);
  expect(await client.snippets.delete("ruled", { zone_id })).toBeNull();
});

it("manages the bot management setting", async () => {
  const name = "bot_management" as never; // not in the client's list of settings
  expect(await client.zones.settings.get(name, { zone_id })).toMatchObject({ id: name, value: "off" });
  const edited = await client.zones.settings.edit(name, { zone_id, value: "on" });
  expect(edited).toMatchObject({ value: "on" });
});

it("every operation has been called", () => {
  const wanted = [
    ...snippetOperations.map(({ id }) => id),
    ...botManagementOperations.map(({ id }) => id),
    "ruleset_entrypoint_get_snippets",
    "ruleset_entrypoint_put_snippets",
  ];
  expect(wanted.filter((id) => !called.has(id))).toEqual([]);
});
