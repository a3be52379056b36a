import { createHash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { canMakeDisks, fillDisk, smallDisk } from "../helpers/disk.ts";
import { startTestServer } from "../helpers/server.ts";

it.skipIf(!canMakeDisks)(
  "a full disk refuses assets and values, keeps nothing of them, and takes them when there is room",
  async () => {
    const folder = await smallDisk(32 * 1024 * 1024);
    // Only files are on the full disk: SQLite would resolve the folder's real path, which is on another disk.
    const databaseUrl = "sqlite::memory:";
    const server = await startTestServer({
      ephemeral: false,
      dataDir: folder,
      databaseUrl,
    });
    onTestFinished(() => server.close(1000));
    const account = `/accounts/${server.ready.account_id}`;
    const namespace = await server.call("POST", `${account}/storage/kv/namespaces`, { title: "one" });
    const value = `${account}/storage/kv/namespaces/${namespace.body.result.id}/values/large`;
    const content = Buffer.alloc(4 * 1024 * 1024, "content");
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);
    const session = await server.call("POST", `${account}/workers/scripts/site/assets-upload-session`, {
      manifest: { "/large": { hash, size: content.length } },
    });
    const upload = async () =>
      fetch(`${server.ready.api}${account}/workers/assets/upload/${hash}`, {
        method: "POST",
        headers: { authorization: `Bearer ${session.body.result.jwt}` },
        body: content,
      });
    const put = async () => server.call("PUT", value, content.toString(), { "content-type": "text/plain" });

    fillDisk(join(folder, "filler"), 2 * 1024 * 1024);
    for (const refused of [await upload(), await put()]) expect(refused.status).toBe(507);
    expect(readdirSync(join(folder, "blobs/incoming"))).toEqual([]);
    expect((await server.call("GET", value)).status).toBe(404);

    rmSync(join(folder, "filler"));
    expect((await upload()).status).toBe(201);
    expect((await put()).status).toBe(200);
  },
);
