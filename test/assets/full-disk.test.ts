import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { canMakeDisks, fillDisk } from "../helpers/disk.ts";
import { startTestServer } from "../helpers/server.ts";

/** A disk of its own, in memory, reached through a process that has it. */
async function smallDisk(bytes: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-disk-"));
  const disk = ["--dev-bind", "/", "/", "--size", String(bytes), "--tmpfs", folder, "--die-with-parent"];
  const holder = spawn("bwrap", [...disk, "sh", "-c", "echo $$; exec sleep 600"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    holder.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  const [pid] = (await once(holder.stdout, "data")) as [Buffer];
  return join(`/proc/${pid.toString().trim()}/root`, folder);
}

it.skipIf(!canMakeDisks)(
  "a full disk refuses assets and values, keeps nothing of them, and takes them when there is room",
  async () => {
    const folder = await smallDisk(32 * 1024 * 1024);
    // The files only: SQLite would look for the folder's true name, which is another disk's.
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
