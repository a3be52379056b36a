import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { leaseSeconds } from "../src/products/workflows/store/store-leases.ts";
import { atLeast, atMost, median, pairedRatio, printGoals, printTable } from "./lib/measure.ts";
import { startDatabase, startOurs, tree } from "./workflows-lib.ts";

/**
 * Compares the same workflows on PostgreSQL and on SQLite; then kills one of two nodes on PostgreSQL and measures the
 * time until its instances resume on the other.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const concurrency = 128;
const roundMs = 2000;
const instances = 50;
/** Time for both nodes to acquire their share of the instances. */
const shareMs = 6000;

const reportedAt = new Map<string, number>();
const witness = createServer((request, response) => {
  reportedAt.set(request.url!.slice(1), performance.now());
  response.end();
});
await new Promise<void>((resolve) => witness.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(witness.address() as AddressInfo).port}/`;

const database = await startDatabase();
const ticking = `export class Ticking extends WorkflowEntrypoint {
  async run({ payload, instanceId }, step) {
    for (let i = 0; i < 1000; i++)
      await step.do("tick", async () => {
        await (await fetch(payload.witness + instanceId)).text();
        await new Promise((resolve) => setTimeout(resolve, 100));
      });
  }
}`;
const onPostgres = ["--database-url", database.url, "--private-networks", "all"];
const first = await startOurs(onPostgres, ticking, ["Ticking"]);
const sqlite = await startOurs();
const engines = { postgres: first, sqlite };
const perSecond = { postgres: [] as number[], sqlite: [] as number[] };
for (let round = -1; round < rounds; round++) {
  for (const name of round % 2 === 0
    ? (["postgres", "sqlite"] as const)
    : (["sqlite", "postgres"] as const)) {
    const start = performance.now();
    let done = 0;
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        for (; performance.now() - start < roundMs; done++) await engines[name].run(10);
      }),
    );
    if (round >= 0) perSecond[name].push(done / ((performance.now() - start) / 1000));
  }
}
await sqlite.stop();

const second = await startOurs(onPostgres, ticking, ["Ticking"]);
await delay(shareMs);
const ids = Array.from({ length: instances }, (_, i) => `t${i}`);
for (const id of ids)
  await first.call("POST", "/workflows/Ticking/instances", { id, params: { witness: url } });
while (reportedAt.size < instances) await delay(10);
const pids = tree(first.pid);
const killedAt = performance.now();
for (const pid of pids) process.kill(pid, "SIGKILL");
const wentOn = (id: string): boolean => (reportedAt.get(id) ?? 0) > killedAt + 500; // excludes requests in flight at the kill
while (!ids.some(wentOn)) await delay(10);
const firstSeconds = (performance.now() - killedAt) / 1000;
while (!ids.every(wentOn)) await delay(10);
const allSeconds = (performance.now() - killedAt) / 1000;
await second.stop();
await database.stop();
witness.close();
witness.closeAllConnections();

printTable(
  ["database", `workflows of 10 steps per second, ${concurrency} at a time`],
  [
    ["PostgreSQL, one node", median(perSecond.postgres)],
    ["SQLite", median(perSecond.sqlite)],
  ],
);
printTable(
  ["a node was killed", "s"],
  [
    ["the first of its instances went on", firstSeconds],
    [`all ${instances} had gone on`, allSeconds],
  ],
);
printGoals([
  atLeast(
    "G12 workflows per second: PostgreSQL / SQLite",
    pairedRatio(perSecond.postgres, perSecond.sqlite),
    0.8,
  ),
  atMost("G12 takeover, s beyond the lease", allSeconds - leaseSeconds, 2),
]);
