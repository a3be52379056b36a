import { createRequire } from "node:module";
import { join } from "node:path";
import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken, startTestServer, type TestServer } from "../../helpers/server.ts";
import { describePrograms } from "./describe.ts";
import { npm } from "./packages.ts";

/** Releases of the official client that projects still pin, with typical calls of these projects. */
let server: TestServer;
let account_id: string;
beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
});
afterAll(() => server.close(1000));

/** Calls methods with the parameters of each release. */
// oxlint-disable-next-line typescript/no-explicit-any
type Loose = any;
interface Release {
  Cloudflare: typeof Cloudflare;
  toFile: (content: string, name: string, options: { type: string }) => Promise<File>;
}

const releases = ["3.5.0", "4.5.0", "5.2.0", "6.5.0", "7.3.0"] as const;
for (const version of releases)
  describePrograms(`cloudflare ${version}`, [npm(`cloudflare@${version}`)], (folder) =>
    tryRelease(version, folder),
  );

function tryRelease(version: string, folder: string): void {
  const major = Number(version[0]);
  let Cloudflare: Release["Cloudflare"];
  let toFile: Release["toFile"];
  let client: Loose;
  let zone_id: string;
  beforeAll(async () => {
    ({ Cloudflare, toFile } = createRequire(join(folder, "index.js"))("cloudflare") as Release);
    client = new Cloudflare({ baseURL: server.ready.api, apiToken: ownerToken, maxRetries: 0 });
    const zone = await client.zones.create({
      account: { id: account_id },
      name: `sdk-${major}.example`,
      type: "full",
    });
    zone_id = zone.id;
  });
  const all = async (pages: AsyncIterable<Loose>): Promise<Loose[]> => Array.fromAsync(pages);

  it("reads the user, token, accounts and memberships", async () => {
    expect((await client.user.tokens.verify()).status).toBe("active");
    expect((await client.user.get()).email).toContain("@");
    expect((await all(client.accounts.list({}))).map(({ id }) => id)).toContain(account_id);
    expect((await all(client.memberships.list({}))).length).toBeGreaterThan(0);
  });

  it("finds, edits and checks zones, with settings", async () => {
    const found = await all(client.zones.list({ name: `sdk-${major}.example` }));
    expect(found.map(({ id }) => id)).toEqual([zone_id]);
    expect((await client.zones.edit({ zone_id, paused: true })).paused).toBe(true);
    expect((await client.zones.edit({ zone_id, paused: false })).paused).toBe(false);
    expect((await client.zones.activationCheck.trigger({ zone_id })).id).toBe(zone_id);
  });

  it("creates, lists, changes, batches, exports and deletes records", async () => {
    const { records } = client.dns;
    const record = { zone_id, type: "A", name: "www", content: "192.0.2.1", ttl: 300 };
    const made = await records.create(record);
    await expect(records.create(record)).rejects.toMatchObject({
      status: 400,
      errors: [{ code: 81058 }, { code: 81057 }],
    });
    expect(await all(records.list({ zone_id }))).toHaveLength(1);
    expect((await records.update(made.id, { ...record, content: "192.0.2.2" })).content).toBe("192.0.2.2");
    expect((await records.edit(made.id, { ...record, comment: "kept" })).comment).toBe("kept");
    if (major > 3)
      await records.batch({ zone_id, posts: [{ type: "TXT", name: "b", content: '"b"', ttl: 60 }] });
    expect(await records.export({ zone_id })).toContain("192.0.2.");
    expect(await records.delete(made.id, { zone_id })).toEqual({ id: made.id });
  });

  it("manages key-value namespaces: values, metadata, keys and bulk writes", async () => {
    const { namespaces } = client.kv;
    const { id } = await namespaces.create({ account_id, title: `sdk-${major}` });
    const of = { account_id };
    // Version 7 has the namespace in the parameters.
    const at = (key: string, more: object = {}): [string, ...Loose[]] =>
      major < 7 ? [id, key, { ...of, ...more }] : [key, { ...of, namespace_id: id, ...more }];
    const metadata = major < 5 ? '{"of":"a"}' : { of: "a" };
    await namespaces.values.update(...at("a key", { value: "one", metadata }));
    expect(await (await namespaces.values.get(...at("a key"))).text()).toBe("one");
    expect(await namespaces.metadata.get(...at("a key"))).toEqual({ of: "a" });
    const pairs = { ...of, body: [{ key: "b", value: "two" }] };
    if (major > 3) await namespaces.bulkUpdate(id, pairs);
    else await namespaces.bulk.update(id, pairs);
    expect((await all(namespaces.keys.list(id, of))).map(({ name }) => name)).toEqual(["a key", "b"]);
    expect((await all(namespaces.list(of))).map((each) => each.id)).toContain(id);
    await namespaces.delete(id, of);
  });

  it("uploads a module with a route and secrets, and lists and deletes it", async () => {
    const name = `sdk-${major}`;
    const of = { account_id };
    const main = await toFile("export default { fetch: () => new Response('hello') }", "main.js", {
      type: "application/javascript+module",
    });
    const { scripts, routes } = client.workers;
    // Before version 6 the client sends each file as a separate field.
    const upload = {
      ...of,
      metadata: { main_module: "main.js", compatibility_date: "2026-01-01" },
      ...(major < 6 ? { "main.js": main } : { files: [main] }),
    };
    if (major < 5) upload.metadata = JSON.stringify(upload.metadata) as Loose;
    expect((await scripts.update(name, upload)).id).toBe(name);
    expect((await all(scripts.list(of))).map(({ id }) => id)).toContain(name);
    const secret = { ...of, name: "KEY", text: "sesame", type: "secret_text" };
    if (major > 3) expect((await scripts.secrets.update(name, secret)).name).toBe("KEY");
    // Version 3 has no methods for routes.
    if (routes !== undefined) {
      const route = await routes.create({ zone_id, pattern: `sdk-${major}.example/*`, script: name });
      expect((await all(await routes.list({ zone_id }))).map(({ id }) => id)).toEqual([route.id]);
      await routes.delete(route.id, { zone_id });
    }
    await scripts.delete(name, of);
  });

  it("manages rules, queues and images", async () => {
    const { rulesets, queues, images } = client;
    const rule = { action: "route", expression: "ssl", action_parameters: { origin: { port: 8443 } } };
    const phase = "http_request_origin";
    expect((await rulesets.phases.update(phase, { zone_id, rules: [rule] })).rules).toHaveLength(1);
    expect((await rulesets.phases.get(phase, { zone_id })).rules).toHaveLength(1);
    const of = { account_id };
    const queue = { queue_name: `sdk-${major}` };
    const made = await queues.create({ ...of, ...(major < 4 ? { body: queue } : queue) });
    expect((await all(await queues.list(of))).length).toBeGreaterThan(0);
    await queues.delete(made.queue_id, of);
    const png = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
      "base64",
    );
    const file = await toFile(png as never, "dot.png", { type: "image/png" });
    const image = await images.v1.create({ ...of, file });
    expect((await images.v1.get(image.id, of)).id).toBe(image.id);
    await images.v1.delete(image.id, of);
  });

  it("throws errors of its own classes", async () => {
    const missing = client.zones.get({ zone_id: "f".repeat(32) });
    await expect(missing).rejects.toBeInstanceOf((Cloudflare as Loose).APIError);
    await expect(missing).rejects.toMatchObject({
      status: expect.any(Number),
      errors: [{ code: expect.any(Number) }],
    });
  });
}
