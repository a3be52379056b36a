import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { tlsOperations } from "../../src/edge/tls/certificates/api.ts";
import { openLocalAuthority, type LocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages certificates and the TLS settings of zones, and parses every response. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let zone_id: string;
let authority: LocalAuthority;
const folder = mkdtempSync(join(tmpdir(), "selvedge-clients-tls-"));
const name = "certified.example";

beforeAll(async () => {
  // Nothing listens on that port, so orders stay pending.
  server = await startTestServer({ acmeDirectory: "https://127.0.0.1:1/directory" });
  ({ client, called } = recordingClient(server, operations));
  authority = openLocalAuthority(folder);
  zone_id = (await client.zones.create({ account: { id: server.ready.account_id }, name })).id;
});
afterAll(async () => {
  await server.close(1000);
  rmSync(folder, { recursive: true });
});

const pairFor = (...hosts: string[]) => {
  const { certificate, privateKey: private_key } = authority.issue(hosts);
  return { certificate, private_key };
};

it("custom certificates are uploaded, read, changed and deleted", async () => {
  const { customCertificates } = client;
  const first = await customCertificates.create({
    zone_id,
    ...pairFor(`www.${name}`),
    type: "legacy_custom",
  });
  expect(first).toMatchObject({ status: "active", hosts: [`www.${name}`], signature: "ECDSAWithSHA256" });
  const second = await customCertificates.create({ zone_id, ...pairFor(name, `*.${name}`) });
  expect(await customCertificates.get(second.id, { zone_id })).toEqual(second);
  const all = await Array.fromAsync(customCertificates.list({ zone_id, per_page: 5 }));
  expect(all.map(({ id }) => id).toSorted()).toEqual([first.id, second.id].toSorted());
  const order = [
    { id: first.id, priority: 5 },
    { id: second.id, priority: 9 },
  ];
  const ordered = await Array.fromAsync(
    customCertificates.prioritize.update({ zone_id, certificates: order }),
  );
  expect(ordered.map(({ id }) => id)).toEqual([second.id, first.id]);
  const renewed = await customCertificates.edit(first.id, { zone_id, ...pairFor(`www.${name}`) });
  expect(renewed.id).toBe(first.id);
  for (const { id } of [renewed, second])
    expect(await customCertificates.delete(id, { zone_id })).toEqual({ id });
  await expect(customCertificates.get(second.id, { zone_id })).rejects.toMatchObject({ status: 404 });
});

it("a pair that cannot serve the zone is rejected with the reason", async () => {
  const mine = pairFor(`www.${name}`);
  const refused: [pair: { certificate: string; private_key: string }, code: number][] = [
    [pairFor("www.other.example"), 1404],
    [{ ...mine, private_key: pairFor(name).private_key }, 1402],
    [{ ...mine, private_key: "none" }, 1401],
    [{ ...mine, certificate: "none" }, 1400],
    [{ ...mine, certificate: mine.certificate + pairFor(name).certificate }, 1405],
  ];
  for (const [pair, code] of refused)
    await expect(client.customCertificates.create({ zone_id, ...pair })).rejects.toMatchObject({
      status: 400,
      errors: [{ code }],
    });
});

it("certificate packs are ordered, read and deleted", async () => {
  const { certificatePacks } = client.ssl;
  const order: Cloudflare.SSL.CertificatePackCreateParams = {
    zone_id,
    type: "advanced",
    hosts: [name, `*.app.${name}`],
    validation_method: "txt",
    validity_days: 90,
    certificate_authority: "lets_encrypt",
  };
  const made = await certificatePacks.create(order);
  expect(made).toMatchObject({ type: "advanced", hosts: order.hosts, certificates: [], validity_days: 90 });
  expect(await certificatePacks.get(made.id, { zone_id })).toMatchObject({ id: made.id, type: "advanced" });
  expect(await certificatePacks.quota.get({ zone_id })).toMatchObject({ advanced: { used: 1 } });
  const packs = () => Array.fromAsync(certificatePacks.list({ zone_id, status: "all" }));
  await expect
    .poll(async () => (await packs()).map(({ type }) => type).toSorted())
    .toEqual(["advanced", "universal"]);
  expect(await certificatePacks.edit(made.id, { zone_id })).toMatchObject({ id: made.id });
  const found = await client.ssl.verification.get({ zone_id });
  expect(found.map((each) => each.cert_pack_uuid)).toContain(made.id);
  await expect(
    client.ssl.verification.edit(made.id, { zone_id, validation_method: "http" }),
  ).rejects.toMatchObject({ status: 400, errors: [{ code: 1419 }] });
  expect(await client.ssl.verification.edit(made.id, { zone_id, validation_method: "txt" })).toMatchObject({
    validation_method: "txt",
  });
  expect(await certificatePacks.delete(made.id, { zone_id })).toEqual({ id: made.id });
  const universal = (await packs())[0]!;
  await expect(certificatePacks.delete(universal.id, { zone_id })).rejects.toMatchObject({ status: 400 });
  const { settings } = client.ssl.universal;
  expect(await settings.edit({ zone_id, enabled: false })).toEqual({ enabled: false });
  expect(await settings.get({ zone_id })).toEqual({ enabled: false });
  await expect.poll(packs).toEqual([]);
});

it.each<[hosts: string[], method: "txt" | "http"]>([
  [["www.other.example"], "txt"],
  [[`*.${name}`], "http"],
  [[`a b.${name}`], "txt"],
  [[`www.${name}`, `*.*.${name}`], "txt"],
])(
  "hosts without a possible certificate are rejected by name: %j by %s",
  async (hosts, validation_method) => {
    await expect(
      client.ssl.certificatePacks.create({
        zone_id,
        type: "advanced",
        hosts,
        validation_method,
        validity_days: 90,
        certificate_authority: "lets_encrypt",
      }),
    ).rejects.toMatchObject({
      status: 400,
      errors: [{ code: 1419, message: expect.stringContaining(hosts.at(-1)!) }],
    });
  },
);

it("the settings ssl and always_use_https are read and changed", async () => {
  const { settings } = client.zones;
  expect(await settings.get("ssl", { zone_id })).toMatchObject({
    id: "ssl",
    value: "flexible",
    editable: true,
  });
  expect(await settings.edit("ssl", { zone_id, value: "strict" })).toMatchObject({ value: "strict" });
  expect(await settings.get("always_use_https", { zone_id })).toMatchObject({ value: "off" });
  expect(await settings.edit("always_use_https", { zone_id, value: "on" })).toMatchObject({ value: "on" });
  await expect(settings.edit("ssl", { zone_id, value: "origin_pull" })).rejects.toMatchObject({
    status: 400,
  });
});

it("the settings of image transformations are read and changed", async () => {
  const { settings, transformationsAllowedOrigins: origins } = client.zones;
  expect(await settings.get("transformations", { zone_id })).toMatchObject({ value: "off" });
  const changed = await settings.edit("transformations", { zone_id, value: "on" });
  expect(changed).toMatchObject({ id: "transformations", value: "on", editable: true });
  expect(await origins.get({ zone_id })).toMatchObject({ value: "" });
  const value = "images.example.com,*.example.net";
  expect(await origins.edit({ zone_id, value })).toMatchObject({ value });
});

it("every operation has been called", () => {
  expect(tlsOperations.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
