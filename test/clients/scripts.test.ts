import { NotFoundError, type Cloudflare } from "cloudflare";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { assetOperations } from "../../src/workers/assets/uploads/api.ts";
import { assetListOperations } from "../../src/workers/assets/uploads/api-list.ts";
import { operations } from "../../src/capabilities.ts";
import { previewOperations } from "../../src/workers/previews/api.ts";
import { scriptOperations } from "../../src/workers/scripts/api.ts";
import { previewForm } from "../runtime/platform.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages an account's scripts and parses every response. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;
let zone_id: string;

const code = (text: string): string =>
  `export default { async fetch() { return new Response(${JSON.stringify(text)}); } };`;
const module = (text = "hello", name = "main.mjs", type = "application/javascript+module") =>
  new File([code(text)], name, { type });
const metadata = { main_module: "main.mjs", compatibility_date: "2026-01-01" };
/** Parameters that the client's types lack, or require although the service does not. */
type Loose = never;

beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
  ({ client, called } = recordingClient(server, operations));
  const zone = await client.zones.create({ account: { id: account_id }, name: "scripts.example" });
  zone_id = zone.id;
});
afterAll(() => server.close(1000));

const put = (name: string, body: object = {}, options: object = {}) =>
  client.workers.scripts.update(name, { account_id, metadata, files: [module()], ...body }, options);

describe("uploads in each form that the client sends", () => {
  it.each<[form: string, body: object, options?: object]>([
    ["labelled as JavaScript, without a boundary", { metadata, files: [module()] }],
    ["as a proper form", { metadata, files: [module()] }, { headers: { "content-type": null } }],
    ["a module under its own name", { metadata, files: undefined, "main.mjs": module() }],
    [
      "metadata as a file",
      { metadata: new File([JSON.stringify(metadata)], "", { type: "application/json" }) },
    ],
    ["metadata as text", { metadata: JSON.stringify(metadata) }],
    [
      "bindings in brackets",
      {
        metadata: {
          ...metadata,
          bindings: [
            { type: "plain_text", name: "A", text: "a" },
            { type: "secret_text", name: "B", text: "b" },
            { type: "service", name: "SELF", service: "formed" },
          ],
          tags: ["one", "two"],
        },
      },
    ],
  ])("%s", async (_form, body, options) => {
    const uploaded = await put("formed", body, options);
    expect(uploaded).toMatchObject({
      id: "formed",
      handlers: ["fetch"],
      startup_time_ms: expect.any(Number),
    });
    const content = await (await client.workers.scripts.content.get("formed", { account_id })).formData();
    expect(await Promise.all([...content.values()].map((part) => (part as File).text()))).toEqual([
      code("hello"),
    ]);
  });

  it("keeps the metadata", async () => {
    const settings = await client.workers.scripts.scriptAndVersionSettings.get("formed", { account_id });
    expect(settings).toMatchObject({
      compatibility_date: "2026-01-01",
      tags: ["one", "two"],
      bindings: [
        { type: "plain_text", name: "A", text: "a" },
        { type: "secret_text", name: "B" },
        { type: "service", name: "SELF", service: "formed" },
      ],
    });
    expect(JSON.stringify(settings)).not.toContain('"b"');
  });
});

describe("an uploaded script", () => {
  const name = "kept";
  let of: { account_id: string; script_name: string };
  beforeEach(async () => {
    of = { account_id, script_name: name };
    await client.delete(`/accounts/${account_id}/workers/services/${name}`).catch(() => {});
    await put(name, { metadata: { ...metadata, tags: ["kept"] } });
  });

  it("is listed, searched and read", async () => {
    const listed = await Array.fromAsync(client.workers.scripts.list({ account_id, tags: "kept:yes" }));
    expect(listed.map(({ id }) => id)).toEqual([name]);
    expect(await client.workers.scripts.search({ account_id, name: "kep" })).toMatchObject([
      { script_name: name },
    ]);
    expect(await client.workers.scripts.get(name, { account_id })).toContain('name="main.mjs"');
  });

  it("is deleted, by force only if others use it", async () => {
    await put("user", {
      metadata: { ...metadata, bindings: [{ type: "service", name: "OTHER", service: name }] },
    });
    await expect(client.workers.scripts.delete(name, { account_id })).rejects.toThrow("used by user");
    expect(await client.workers.scripts.delete(name, { account_id, force: true })).toBeNull();
    await expect(client.workers.scripts.get(name, { account_id })).rejects.toThrow(NotFoundError);
    await client.delete(`/accounts/${account_id}/workers/services/user`);
  });

  it("keeps its bindings when its code is replaced", async () => {
    await client.workers.scripts.secrets.update(name, {
      account_id,
      name: "TOKEN",
      text: "t",
      type: "secret_text",
    });
    await client.workers.scripts.content.update(name, {
      account_id,
      metadata: { main_module: "main.mjs" },
      files: [module("replaced")],
    });
    const { bindings } = await client.workers.scripts.scriptAndVersionSettings.get(name, { account_id });
    expect(bindings).toMatchObject([{ type: "secret_text", name: "TOKEN" }]);
    const content = await (await client.workers.scripts.content.get(name, { account_id })).text();
    expect(content).toContain(code("replaced"));
  });

  it("has settings of its version and settings of its own", async () => {
    const edited = await client.workers.scripts.scriptAndVersionSettings.edit(name, {
      account_id,
      settings: {
        bindings: [{ type: "json", name: "J", json: { deep: [1] } }],
        compatibility_flags: ["nodejs_compat"],
        limits: { cpu_ms: 20 },
        tags: ["edited"],
      },
    } as Loose);
    expect(edited).toMatchObject({
      compatibility_date: "2026-01-01",
      compatibility_flags: ["nodejs_compat"],
      limits: { cpu_ms: 20 },
      tags: ["edited"],
    });
    const { settings } = client.workers.scripts;
    expect(
      await settings.edit(name, { account_id, observability: { enabled: true }, tags: null }),
    ).toMatchObject({ observability: { enabled: true }, tags: [] });
    expect(await settings.get(name, { account_id })).toMatchObject({ observability: { enabled: true } });
    expect(await settings.edit(name, { account_id, logpush: true })).toMatchObject({ logpush: true });
    expect(await settings.get(name, { account_id })).toMatchObject({
      logpush: true,
      observability: { enabled: true },
    });
    const path = `/accounts/${account_id}/workers/scripts/${name}`;
    expect(await client.put(`${path}/usage-model`, { body: { usage_model: "unbound" } })).toMatchObject({
      result: { usage_model: "unbound", user_limits: { cpu_ms: 20 } },
    });
    expect(await client.get(`${path}/usage-model`)).toMatchObject({ result: { usage_model: "unbound" } });
    expect(await client.get(`${path}/bindings`)).toMatchObject({ result: [{ name: "J", type: "json" }] });
    await client.put(`${path}/tags`, { body: ["a", "b"] });
    await client.put(`${path}/tags/c`);
    await client.delete(`${path}/tags/a`);
    expect(await client.get(`${path}/tags`)).toMatchObject({ result: ["b", "c"] });
  });

  it("has secrets, which are never returned", async () => {
    const { secrets } = client.workers.scripts;
    const put = await secrets.update(name, { account_id, name: "A", text: "secret-a", type: "secret_text" });
    expect(put).toEqual({ name: "A", type: "secret_text" });
    await secrets.bulkUpdate(name, {
      account_id,
      secrets: { A: null, B: { name: "B", text: "b", type: "secret_text" }, NEVER: null },
    } as Loose);
    expect((await Array.fromAsync(secrets.list(name, { account_id }))).map((each) => each.name)).toEqual([
      "B",
    ]);
    expect(await secrets.get("B", of)).toMatchObject({ name: "B" });
    expect(await secrets.delete("B", of)).toBeNull();
    await expect(secrets.delete("B", of)).rejects.toThrow("Binding not found");
  });

  it("loses no changes among many concurrent ones", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `S${i}`);
    const { secrets } = client.workers.scripts;
    await Promise.all(
      names.map(async (each) =>
        secrets.update(name, { account_id, name: each, text: each, type: "secret_text" }),
      ),
    );
    const held = (await Array.fromAsync(secrets.list(name, { account_id }))).map((each) => each.name);
    expect(held.toSorted()).toEqual(names.toSorted());
  });

  it("has versions and deployments", async () => {
    const { versions, deployments } = client.workers.scripts;
    const second = await versions.create(name, {
      account_id,
      metadata: { ...metadata, annotations: { "workers/tag": "v2" } },
      files: [module("second")],
    });
    const listed = await Array.fromAsync(versions.list(name, { account_id }));
    expect(listed[0]).toMatchObject({ id: second.id });
    expect(await versions.get(second.id!, of)).toMatchObject({
      annotations: { "workers/tag": "v2" },
      resources: { script: { handlers: ["fetch"] } },
    });
    const listDeployments = async () =>
      (await Array.fromAsync(deployments.list(name, { account_id }))).flatMap((page) => page.deployments);
    const [before] = await listDeployments();
    const [first] = before!.versions;
    const made = await deployments.create(name, {
      account_id,
      strategy: "percentage",
      versions: [
        { version_id: first!.version_id, percentage: 75 },
        { version_id: second.id!, percentage: 25 },
      ],
    });
    const [live] = await listDeployments();
    expect(live).toMatchObject({ id: made.id });
    expect(await deployments.get(made.id, of)).toMatchObject({
      versions: [{ percentage: 75 }, { percentage: 25 }],
    });
    const request = { account_id, name: "A", text: "a", type: "secret_text" } as const;
    await expect(client.workers.scripts.secrets.update(name, request)).rejects.toThrow("not deployed");
    await expect(deployments.delete(made.id, of)).rejects.toThrow("serves requests");
    expect(await deployments.delete(before!.id, of)).toMatchObject({
      success: true,
    });
  });

  it("has its own host, and custom hosts", async () => {
    const { subdomain } = client.workers.scripts;
    expect(await subdomain.create(name, { account_id, enabled: false })).toMatchObject({ enabled: false });
    expect(await subdomain.create(name, { account_id, enabled: true })).toMatchObject({ enabled: true });
    expect(await subdomain.get(name, { account_id })).toMatchObject({ enabled: true });
    expect(await subdomain.delete(name, { account_id })).toMatchObject({ enabled: false });

    const { domains, routes } = client.workers;
    const hostname = "www.scripts.example";
    const domain = await domains.update({ account_id, zone_id, hostname, service: name });
    expect(domain).toMatchObject({ hostname, service: name, zone_name: "scripts.example" });
    expect(await Array.fromAsync(domains.list({ account_id, service: name }))).toEqual([domain]);
    expect(await domains.get(domain.id, { account_id })).toEqual(domain);
    const records = `/accounts/${account_id}/workers/domains/records/${domain.id}`;
    expect(await client.get(records)).toMatchObject({ result: domain });
    await domains.delete(domain.id, { account_id });

    const made = await routes.create({ zone_id, pattern: "scripts.example/api/*", script: name });
    expect(await routes.get(made.id, { zone_id })).toEqual(made);
    await routes.update(made.id, { zone_id, pattern: "scripts.example/v2/*", script: name });
    expect((await Array.fromAsync(routes.list({ zone_id }))).map(({ pattern }) => pattern)).toEqual([
      "scripts.example/v2/*",
    ]);
    await routes.delete(made.id, { zone_id });
    expect(await Array.fromAsync(routes.list({ zone_id }))).toEqual([]);
  });

  it("is deployed by other tools with routes, domains, services and workers", async () => {
    const base = `/accounts/${account_id}/workers`;
    const path = `${base}/scripts/${name}`;
    await client.put(`${path}/routes`, { body: [{ pattern: "*.scripts.example/*" }, "scripts.example/x"] });
    const routed = await Array.fromAsync(client.workers.routes.list({ zone_id }));
    expect(routed.map(({ pattern }) => pattern).toSorted()).toEqual([
      "*.scripts.example/*",
      "scripts.example/x",
    ]);
    const origins = [{ hostname: "a.scripts.example" }];
    expect(
      await client.post(`${path}/domains/changeset?replace_state=true`, { body: origins }),
    ).toMatchObject({
      result: { added: [{ hostname: "a.scripts.example" }], updated: [], removed: [], conflicting: [] },
    });
    await client.put(`${path}/domains/records`, { body: { override_scope: true, origins } });
    await client.put(`${path}/domains/records`, {
      body: { override_scope: true, origins: [{ hostname: "b.scripts.example" }] },
    });
    const domains = await Array.fromAsync(client.workers.domains.list({ account_id }));
    expect(domains.map(({ hostname }) => hostname)).toEqual(["b.scripts.example"]);
    expect(await client.workers.beta.workers.get(name, { account_id })).toMatchObject({
      name,
      references: { domains: [{ hostname: "b.scripts.example" }] },
    });
    const patched = await client.patch(`${base}/workers/${name}/versions/latest`, {
      body: {
        env: { TEXT: { type: "plain_text", text: "t" }, GONE: null },
        annotations: { "workers/tag": "p" },
      },
    });
    expect(patched).toMatchObject({
      result: { annotations: { "workers/tag": "p" }, bindings: [{ name: "TEXT" }] },
    });
    expect(await client.get(`${base}/services/${name}`)).toMatchObject({
      result: { default_environment: { script: { id: name } } },
    });
    expect(await client.get(`${path}/references`)).toMatchObject({ result: { services: { incoming: [] } } });
    expect(await client.get(`${base}/tails/by-consumer/${name}`)).toMatchObject({ result: [] });
    expect(await Array.fromAsync(client.durableObjects.namespaces.list({ account_id }))).toEqual([]);
    await client.delete(`${base}/services/${name}?force=false`);
    expect(await Array.fromAsync(client.workers.routes.list({ zone_id }))).toEqual([]);
    expect(await Array.fromAsync(client.workers.domains.list({ account_id }))).toEqual([]);
  });
});

it("is created in steps: first without a version, then with code in JSON", async () => {
  const { workers } = client.workers.beta;
  const made = await workers.create({ account_id, name: "stepwise", tags: ["a"] });
  expect(made).toMatchObject({ name: "stepwise", deployed_on: null, tags: ["a"] });
  await expect(workers.create({ account_id, name: "stepwise" })).rejects.toMatchObject({ status: 409 });
  expect(
    (await Array.fromAsync(workers.list({ account_id, per_page: 2 }))).map(({ name }) => name),
  ).toContain("stepwise");
  const create = async (text: string, deploy: boolean) =>
    workers.versions.create(made.id, {
      account_id,
      deploy,
      main_module: "main.mjs",
      compatibility_date: "2026-01-01",
      modules: [
        {
          name: "main.mjs",
          content_type: "application/javascript+module",
          content_base64: Buffer.from(code(text)).toString("base64"),
        },
      ],
      bindings: [{ type: "plain_text", name: "A", text: "a" }],
    });
  const first = await create("first", true);
  const second = await create("second", false);
  const of = { account_id, worker_id: made.id };
  const listed = await Array.fromAsync(workers.versions.list(made.id, { account_id }));
  expect(listed.map(({ id, number }) => [id, number])).toEqual([
    [second.id, 2],
    [first.id, 1],
  ]);
  const latest = await workers.versions.get("latest", { ...of, include: "modules" });
  expect(latest.modules).toMatchObject([
    { name: "main.mjs", content_base64: Buffer.from(code("second")).toString("base64") },
  ]);
  await workers.versions.delete(second.id, of);
  await expect(workers.versions.delete(first.id, of)).rejects.toThrow("serves requests");
  const edit = { account_id, name: "stepwise", subdomain: { enabled: false }, tags: [] };
  expect(await workers.update(made.id, edit)).toMatchObject({ subdomain: { enabled: false }, tags: [] });
  expect(await workers.edit(made.id, { account_id, tags: ["b"] } as Loose)).toMatchObject({ tags: ["b"] });
  await expect(workers.update(made.id, { ...edit, name: "other" })).rejects.toThrow("cannot be renamed");
  await workers.delete(made.id, { account_id });
  await expect(workers.get("stepwise", { account_id })).rejects.toThrow(NotFoundError);
});

it("has settings of the account", async () => {
  const { subdomains, accountSettings } = client.workers;
  const { subdomain } = await subdomains.get({ account_id });
  expect(subdomain).toMatch(/^[a-z0-9-]+$/);
  expect(await subdomains.update({ account_id, subdomain: "renamed" })).toEqual({ subdomain: "renamed" });
  const probe = (name: string) => client.get(`/accounts/${account_id}/workers/subdomains/${name}`);
  await expect(probe("free")).rejects.toMatchObject({ errors: [{ code: 10032 }] });
  expect(await probe("renamed")).toMatchObject({ result: { subdomain: "renamed" } });
  await subdomains.delete({ account_id });
  await expect(subdomains.get({ account_id })).rejects.toMatchObject({ errors: [{ code: 10007 }] });
  await subdomains.update({ account_id, subdomain });
  const settings = { default_usage_model: "standard", green_compute: false };
  expect(await accountSettings.get({ account_id })).toEqual(settings);
  expect(await accountSettings.update({ account_id, ...settings })).toEqual(settings);
});

it("has static assets", async () => {
  const content = "<h1>assets</h1>";
  const hash = "0123456789abcdef0123456789abcdef";
  const session = await client.workers.scripts.assets.upload.create("site", {
    account_id,
    manifest: { "/index.html": { hash, size: content.length } },
  });
  const uploaded = await client.workers.assets.upload.create(
    { account_id, base64: true, body: { [hash]: Buffer.from(content).toString("base64") } } as Loose,
    { headers: { authorization: `Bearer ${session.jwt}` } },
  );
  const raw = `/accounts/${account_id}/workers/assets/upload/${hash}`;
  const again = client.post(raw, { headers: { authorization: "Bearer no.token.really" }, body: {} });
  await expect(again).rejects.toMatchObject({ status: 401 });
  await put("site", {
    metadata: { ...metadata, assets: { jwt: uploaded.jwt }, bindings: [{ type: "assets", name: "ASSETS" }] },
  });
  expect(await client.workers.scripts.list({ account_id })).toMatchObject({
    result: expect.arrayContaining([expect.objectContaining({ id: "site", has_assets: true })]),
  });
  // The client has no methods for our own operations.
  const own = `/accounts/${account_id}/workers/scripts/site/edge/assets`;
  expect(await client.get(own)).toMatchObject({
    result: [{ path: "/index.html", hash, size: content.length }],
    result_info: { total_count: 1 },
  });
  expect(await client.get(`${own}?search=none`)).toMatchObject({ result: [] });
  expect(await client.get(`${own}/rules`)).toMatchObject({ result: { headers: [], redirects: [] } });
  await put("without-assets");
  const missing = client.get(own.replace("site", "without-assets"));
  await expect(missing).rejects.toMatchObject({ status: 404 });
});

it("runs code that is not deployed", async () => {
  await put("previewed");
  const before = (await client.workers.scripts.versions.list("previewed", { account_id })).result;
  // The client has no methods for our own operations.
  const answer: { result: { response: { body: string } } } = await client.post(
    `/accounts/${account_id}/workers/scripts/previewed/edge/preview`,
    { body: previewForm(code("unsaved"), {}) },
  );
  expect(answer.result).toMatchObject({ outcome: "ok", response: { status: 200, body: "unsaved" } });
  const after = (await client.workers.scripts.versions.list("previewed", { account_id })).result;
  expect(after).toEqual(before);
});

it("every operation has been called", () => {
  const lists = [scriptOperations, previewOperations, assetOperations, assetListOperations];
  const wanted = lists.flat().map(({ id }) => id);
  expect(wanted.filter((id) => !called.has(id))).toEqual([]);
});
