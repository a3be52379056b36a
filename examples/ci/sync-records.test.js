import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Cloudflare from "cloudflare";
import { syncRecords } from "./sync-records.js";

/* Tests automation against a separate platform: in memory, on free ports, with a token that the test chooses. */
const selvedge = fileURLToPath(new URL("../../bin/selvedge.js", import.meta.url));
const token = "a-token-for-this-run";

async function startSelvedge(...flags) {
  const folder = await mkdtemp(join(tmpdir(), "selvedge-ci-"));
  const readyFile = join(folder, "ready.json");
  const listeners = ["--api-listen", "--edge-listen", "--dns-listen"].flatMap((flag) => [
    flag,
    "127.0.0.1:0",
  ]);
  const child = spawn(
    process.execPath,
    [selvedge, "serve", "--ephemeral", "--ready-file", readyFile, ...listeners, ...flags],
    { env: { ...process.env, SELVEDGE_API_TOKEN: token }, stdio: ["ignore", "ignore", "inherit"] },
  );
  const ready = await readWhenReady(readyFile, child);
  return {
    client: new Cloudflare({ baseURL: ready.api, apiToken: token, maxRetries: 0 }),
    accountId: ready.account_id,
    async stop() {
      child.kill();
      await once(child, "exit");
      await rm(folder, { recursive: true });
    },
  };
}

/** The ready file appears when every listener accepts connections. */
async function readWhenReady(file, child) {
  while (child.exitCode === null) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text !== undefined) return JSON.parse(text);
    await delay(20);
  }
  throw new Error(`selvedge ended with exit code ${child.exitCode}`);
}

let platform;
before(async () => {
  platform = await startSelvedge();
});
after(() => platform.stop());

await test("creates, changes and deletes records, and then has nothing to do", async () => {
  const { client, accountId } = platform;
  const zone = await client.zones.create({ name: "shop.example", account: { id: accountId }, type: "full" });
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
  const limited = await startSelvedge("--api-rate-limit", "1");
  try {
    const zoneId = "0".repeat(32);
    await assert.rejects(syncRecords(zoneId, {}, limited.client), { status: 404 });
    await assert.rejects(syncRecords(zoneId, {}, limited.client), { status: 429 });
  } finally {
    await limited.stop();
  }
});
