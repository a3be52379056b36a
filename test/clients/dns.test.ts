import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operations } from "../../src/operations.ts";
import { dnssecOperations } from "../../src/name-server/api-dnssec.ts";
import { dnsSettingsOperations } from "../../src/name-server/api-settings.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages how zones are answered, and understands every answer. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let zone_id: string;

beforeAll(async () => {
  server = await startTestServer();
  ({ client, called } = recordingClient(server, operations));
  const account = { id: server.ready.account_id };
  zone_id = (await client.zones.create({ account, name: "answers.example" })).id;
});
afterAll(() => server.close(1000));

it("has a zone signed, and no longer", async () => {
  const { dnssec } = client.dns;
  expect(await dnssec.get({ zone_id })).toMatchObject({ status: "disabled", ds: null });
  const signed = await dnssec.edit({ zone_id, status: "active" });
  expect(signed).toMatchObject({ status: "pending", flags: 257, algorithm: "13", digest_type: "2" });
  expect(signed.ds).toBe(`answers.example. 3600 IN DS ${signed.key_tag} 13 2 ${signed.digest}`);
  // Under the static policy the parent is taken to follow.
  await expect.poll(async () => (await dnssec.get({ zone_id })).status, { timeout: 20_000 }).toBe("active");
  expect(await dnssec.edit({ zone_id, status: "disabled" })).toMatchObject({ status: "pending-disabled" });
  await expect.poll(async () => (await dnssec.get({ zone_id })).status, { timeout: 20_000 }).toBe("disabled");
  await dnssec.delete({ zone_id });
  expect(await dnssec.get({ zone_id })).toMatchObject({ status: "disabled", modified_on: null });
});

it("changes the DNS settings of a zone", async () => {
  const { zone } = client.dns.settings;
  expect(await zone.get({ zone_id })).toMatchObject({ ns_ttl: 86_400, flatten_all_cnames: false });
  const edited = await zone.edit({ zone_id, ns_ttl: 3600, flatten_all_cnames: true });
  expect(edited).toMatchObject({ ns_ttl: 3600, flatten_all_cnames: true });
  expect(await zone.get({ zone_id })).toEqual(edited);
});

it("that was all of them", () => {
  const expected = [...dnssecOperations, ...dnsSettingsOperations];
  expect(expected.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
