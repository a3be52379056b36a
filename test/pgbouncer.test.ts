import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { sql } from "kysely";
import { diagnose } from "../src/cli/doctor/diagnosis.ts";
import { loadConfig } from "../src/platform/config/config.ts";
import { openStorage } from "../src/platform/storage/storage.ts";
import { hasPgBouncer, startPgBouncer, type PgBouncer } from "./helpers/pgbouncer.ts";
import { startPostgres, type TestPostgres } from "./helpers/postgres.ts";
import { startTestServer, type TestServer } from "./helpers/server.ts";
import { requestEdge } from "./helpers/edge-request.ts";

/** Two nodes that reach PostgreSQL through PgBouncer in transaction mode: each transaction has another connection. */
describe.skipIf(!hasPgBouncer)("through PgBouncer in transaction mode", () => {
  let postgres: TestPostgres;
  let pgbouncer: PgBouncer;
  let databaseUrl: string;
  let nodes: TestServer[];
  const wait = { interval: 20 };

  beforeAll(async () => {
    postgres = await startPostgres();
    pgbouncer = await startPgBouncer(postgres);
    databaseUrl = pgbouncer.urlOf(await postgres.createDatabase());
    const settings = { databaseUrl, logLevel: "fatal" };
    nodes = await Promise.all([startTestServer(settings), startTestServer(settings)]);
  });
  afterAll(async () => {
    for (const node of nodes) await node.close(1000);
    await pgbouncer.stop();
    await postgres.stop();
  });

  it("nodes that start at the same time migrate a database once, and leave no lock behind", async () => {
    for (let round = 0; round < 3; round++) {
      const direct = await postgres.createDatabase();
      const url = pgbouncer.urlOf(direct);
      const opened = await Promise.all(Array.from({ length: 4 }, () => openStorage(url)));
      for (const storage of opened) {
        const { rows } = await sql<{ locks: string }>`
          select count(*) as locks from pg_locks where locktype = 'advisory'`.execute(storage.read);
        expect(Number(rows[0]!.locks)).toBe(0);
      }
      for (const storage of opened) await storage.close();
    }
  });

  it("nodes start, write at once, and follow each other without notifications", async () => {
    const names = Array.from({ length: 40 }, (_, n) => `pooled-${n}.example`);
    const answers = await Promise.all(
      names.map(async (name, n) => nodes[n % 2]!.call("POST", "/zones", { name })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    for (const { services } of nodes)
      await vi.waitFor(() => expect(services.zones.list()).toHaveLength(names.length), wait);
    const reads = await Promise.all(
      answers.map(async ({ body }, n) =>
        nodes[(n + 1) % 2]!.call("GET", `/zones/${body.result.id}/dns_records`),
      ),
    );
    expect(new Set(reads.map(({ status }) => status))).toEqual(new Set([200]));
    for (const { services } of nodes) expect(services.storage.following!.isNotified).toBe(false);
  });

  it("a record is served at the other node", async () => {
    const [first, second] = nodes as [TestServer, TestServer];
    const zone = await first.newZone("served.example");
    const record = { type: "A", name: "@", content: "127.0.0.1", proxied: true };
    await first.call("POST", `/zones/${zone}/dns_records`, record);
    const rule = { action: "route", expression: "true", action_parameters: { origin: { port: 1 } } };
    const path = `/zones/${zone}/rulesets/phases/http_request_origin/entrypoint`;
    expect((await first.call("PUT", path, { rules: [rule] })).status).toBe(200);
    const at = async (): Promise<number> => (await requestEdge(second.ready.edge, "served.example")).status;
    await vi.waitFor(async () => expect(await at()).toBe(521), wait);
  });

  it("doctor says that notifications do not arrive", async () => {
    const { config } = loadConfig({ databaseUrl }, {}, undefined);
    const found = (await diagnose(config)).find(({ name }) => name === "notifications");
    expect(found).toMatchObject({ state: "advice", detail: expect.stringContaining("within half a second") });
  });

  it("calls get 503 while PostgreSQL is away, and nodes continue when it is back", async () => {
    const readiness = async ({ ready: { api } }: TestServer): Promise<number> =>
      (await fetch(new URL("/readyz", api))).status;
    await postgres.crash();
    for (const node of nodes) {
      await vi.waitFor(async () => expect(await readiness(node)).toBe(503), wait);
      const { status, headers } = await node.call("POST", "/zones", { name: "refused.example" });
      expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
    }
    await postgres.start();
    for (const [n, node] of nodes.entries()) {
      await vi.waitFor(async () => expect(await readiness(node)).toBe(200), wait);
      expect((await node.call("POST", "/zones", { name: `again-${n}.example` })).status).toBe(200);
    }
  });
});
