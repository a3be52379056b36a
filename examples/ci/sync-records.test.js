import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Cloudflare from "cloudflare";
import { startSelvedge } from "selvedge";
import { syncRecords } from "./sync-records.js";

/* Tests automation against a separate platform: in memory, on free ports, gone with the test. */
const clientOf = ({ urls, token }) => new Cloudflare({ baseURL: urls.api, apiToken: token, maxRetries: 0 });

let platform;
before(async () => {
  platform = await startSelvedge();
});
after(() => platform.close());

await test("creates, changes and deletes records, and then has nothing to do", async () => {
  const client = clientOf(platform);
  const account = { id: platform.accountId };
  const zone = await client.zones.create({ name: "shop.example", account, type: "full" });
  const sync = (wanted) => syncRecords(zone.id, wanted, client);
  const [www, old] = ["www.shop.example", "old.shop.example"];

  assert.deepEqual(await sync({ [www]: "192.0.2.1", [old]: "192.0.2.2" }), {
    created: 2,
    changed: 0,
    deleted: 0,
  });
  assert.deepEqual(await sync({ [www]: "192.0.2.9" }), { created: 0, changed: 1, deleted: 1 });
  assert.deepEqual(await sync({ [www]: "192.0.2.9" }), { created: 0, changed: 0, deleted: 0 });
});

await test("reports a rate limit instead of hiding it", async () => {
  const limited = await startSelvedge({ settings: { apiRateLimit: 1 } });
  try {
    const client = clientOf(limited);
    const zoneId = "0".repeat(32);
    await assert.rejects(syncRecords(zoneId, {}, client), { status: 404 });
    await assert.rejects(syncRecords(zoneId, {}, client), { status: 429 });
  } finally {
    await limited.close();
  }
});
