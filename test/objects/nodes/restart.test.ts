import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { freePort } from "../../helpers/free-port.ts";
import { startPostgres, type TestPostgres } from "../../helpers/postgres.ts";
import { serve, temporaryFolder, type ServerProcess } from "../../helpers/process.ts";
import { ownerToken } from "../../helpers/server.ts";
import { callsOf, type Calls } from "../../runtime/platform.ts";

/** A node keeps the writes of its objects that no shipment has, as long as no other node has taken the objects over. */
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
const leaseMs = 4000;
let postgres: TestPostgres;
let databaseUrl = "";
let server: ServerProcess;
let node: Calls;

async function start(): Promise<void> {
  const dataDir = join(folder, "node");
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  server = await serve(
    [
      ...["--data-dir", dataDir, "--database-url", databaseUrl, "--blob-url", "postgres"],
      ...["--backup-folder", join(folder, "place"), "--object-log", "1h"],
      ...["--object-lease-seconds", String(leaseMs / 1000), "--node-listen", `127.0.0.1:${await freePort()}`],
    ],
    { SELVEDGE_API_TOKEN: ownerToken, SELVEDGE_API_RATE_LIMIT: "0" },
  );
  node = await callsOf(server.ready, ownerToken);
}

beforeAll(async () => {
  postgres = await startPostgres();
  databaseUrl = await postgres.createDatabase();
  await start();
});
afterAll(async () => {
  server.process.kill("SIGKILL");
  await server.exited;
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

const code = `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  memory = 0;
  async fetch() {
    const n = (this.ctx.storage.kv.get("n") ?? 0) + 1;
    this.ctx.storage.kv.put("n", n);
    return Response.json([n, ++this.memory]);
  }
}
export default { fetch: (request, env) => env.COUNTERS.getByName("one").fetch(request) };`;
const count = async (): Promise<unknown> => {
  const { status, body } = await node.ask("counters");
  if (status !== 200) throw new Error(body);
  return JSON.parse(body);
};
const later = { interval: 100 };

it("a node that is killed, and starts again, has everything, also without a shipment", async () => {
  await node.deploy("counters", {
    code,
    bindings: [{ type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } },
  });
  for (let n = 1; n <= 5; n++) expect(await count()).toEqual([n, n]);
  server.process.kill("SIGKILL");
  await server.exited;
  await start();
  expect(await vi.waitFor(count, later)).toEqual([6, 1]);
});

it("without PostgreSQL for a lease no object answers, and afterwards each goes on where it was", async () => {
  postgres.pause();
  // Its instance ends before another node could have the object.
  await vi.waitFor(async () => expect((await node.ask("counters")).status).not.toBe(200), later);
  postgres.resume();
  const [n, memory] = (await vi.waitFor(count, later)) as [number, number];
  expect(n).toBeGreaterThan(6);
  expect(memory).toBe(1);
});
