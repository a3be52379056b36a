import { execFile } from "node:child_process";
import { chmodSync, cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { s3Credentials, startS3 } from "../helpers/s3.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { callsOf, startHosting, type Calls } from "../runtime/platform.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";

/** Nodes that share PostgreSQL have no owner for an object yet, so none of them runs one. */
const run = promisify(execFile);
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
let postgres: TestPostgres;
beforeAll(async () => (postgres = await startPostgres()));
afterAll(async () => {
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

const code = `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  count() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; }
  plan() { return this.ctx.storage.setAlarm(Date.now() + 100); }
  alarm() { this.count(); }
  async fetch() { return new Response(String(this.count())); }
}
export default { async fetch(request, env) {
  const [, what] = new URL(request.url).pathname.split("/");
  const stub = env.COUNTERS.getByName("one");
  try {
    if (what === "fetch") return new Response(await (await stub.fetch(request)).text());
    if (what === "d1") return Response.json(await env.DB.prepare("insert into t values (1) returning (select count(*) from t) as n").first("n"));
    return Response.json(await stub[what]() ?? null);
  } catch (error) { return new Response(error.message); }
} };`;
const refused =
  "Objects and D1 databases do not run on this installation: its configuration is in PostgreSQL, which several nodes may share, and each of them needs a single owner.";

it("objects and databases of a backup are refused by name on nodes that share PostgreSQL", async () => {
  const hosting = await startHosting({ dataDir: join(folder, "single"), ephemeral: false });
  const database = (await hosting.call("POST", `/accounts/${hosting.account}/d1/database`, { name: "db" }))
    .body.result as { uuid: string };
  await hosting.deploy("counters", {
    code,
    bindings: [
      { type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" },
      { type: "d1", name: "DB", id: database.uuid },
    ],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } },
  });
  const sql = { sql: "create table t (n)" };
  const query = `/accounts/${hosting.account}/d1/database/${database.uuid}/query`;
  expect((await hosting.call("POST", query, sql)).status).toBe(200);
  expect((await hosting.ask("counters", "/count")).body).toBe("1");
  expect((await hosting.ask("counters", "/d1")).body).toBe("1");
  await hosting.ask("counters", "/plan");
  await hosting.close(0);
  const backup = join(folder, "backup");
  const command = (...args: string[]): Promise<unknown> =>
    run(process.execPath, ["bin/selvedge.js", ...args]);
  await command("backup", backup, "--data-dir", join(folder, "single"));
  const databaseUrl = await postgres.createDatabase();
  const dataDirs = ["a", "b"].map((name) => join(folder, name));
  const s3 = await startS3();
  const { accessKeyId: blobAccessKeyId, secretAccessKey: blobSecretAccessKey } = s3Credentials;
  const keys = ["--blob-access-key-id", blobAccessKeyId, "--blob-secret-access-key", blobSecretAccessKey];
  const shared = ["--database-url", databaseUrl, "--blob-url", s3.url, ...keys];
  await command("restore", backup, "--data-dir", dataDirs[0]!, ...shared);
  cpSync(dataDirs[0]!, dataDirs[1]!, { recursive: true });
  const nodes: (TestServer & Calls)[] = [];
  try {
    for (const dataDir of dataDirs) {
      const server = await startTestServer({
        ...{ databaseUrl, dataDir, ephemeral: false },
        ...{ blobUrl: s3.url, blobAccessKeyId, blobSecretAccessKey },
      });
      nodes.push({ ...server, ...(await callsOf(server.ready, ownerToken)) });
    }
    for (const node of nodes) {
      for (const what of ["count", "fetch"])
        expect((await node.ask("counters", `/${what}`)).body, what).toBe(refused);
      expect((await node.ask("counters", "/d1")).body).toContain(refused);
      const answer = await node.call("POST", query, { sql: "select * from t" });
      expect(JSON.stringify(answer.body.errors)).toContain(refused);
      expect(node.services.objectCells.pids).toEqual([]);
      expect(node.services.objectAlarms.counts).toEqual({ ran: 0, failed: 0 });
    }
    // The data stays for an installation on SQLite.
    for (const dataDir of dataDirs) {
      expect(existsSync(join(dataDir, "objects"))).toBe(true);
      expect(readdirSync(join(dataDir, "objects"))).toHaveLength(2);
    }
  } finally {
    for (const node of nodes) await node.close(0);
    await s3.stop();
  }
});
