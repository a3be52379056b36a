import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { Resolver } from "node:dns/promises";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { s3Credentials, startS3 } from "../test/helpers/s3.ts";
import { api, benchToken, startSelvedge, type Started } from "./lib/child.ts";
import { timesInTurns, type InTurns } from "./lib/in-turns.ts";
import { load } from "./lib/load.ts";
import {
  atLeast,
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
} from "./lib/measure.ts";
import { startDatabase } from "./workflows-lib.ts";

/**
 * Measures starts of the package and of a clone, reads of blobs from a bucket, the time until a change is visible at
 * another node, the rate of a backup and writes during it, and writes of one and of eight clients. BENCH_MEGABYTES is
 * the size of the backup.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const megabytes = Number(process.env["BENCH_MEGABYTES"] ?? 1000);
const goals = [];
const folder = mkdtempSync(join(tmpdir(), "selvedge-operations-"));
const percentile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))]!;
const headers = { authorization: `Bearer ${benchToken}`, "content-type": "application/json" };

/** The folder of the package as npm would install it, with the clone's dependencies. */
function unpacked(): string {
  const built = spawnSync(process.execPath, ["scripts/build.ts"], { stdio: ["ignore", "ignore", "inherit"] });
  if (built.status !== 0) throw new Error("the build failed");
  const root = join(folder, "package");
  for (const each of ["package.json", "bin", "dist", "dashboard"])
    cpSync(each, join(root, each), { recursive: true });
  symlinkSync(resolve("node_modules"), join(root, "node_modules"));
  return root;
}

/** CPU time from the start to the first answer, in seconds. */
async function startCpu(root: string, cache: string): Promise<number> {
  process.env["NODE_COMPILE_CACHE"] = cache;
  const started = await startSelvedge(["--ephemeral"], mkdtempSync(join(folder, "data-")), root);
  await api(started.ready, "GET", "/user");
  const seconds = cpuMicroseconds(started.pid) / 1e6;
  await started.stop();
  return seconds;
}

const roots = { clone: ".", package: unpacked() };
const starts: Record<string, number[]> = {};
for (let round = 0; round < rounds; round++)
  for (const [name, root] of Object.entries(roots)) {
    const cache = join(folder, `cache-${name}-${round}`);
    (starts[`${name}, cold`] ??= []).push(await startCpu(root, cache));
    await delay(200); // the cache is written at the end of the process
    (starts[`${name}, warm`] ??= []).push(await startCpu(root, cache));
  }
delete process.env["NODE_COMPILE_CACHE"];
printTable(
  ["start", "CPU s"],
  Object.entries(starts).map(([name, seconds]) => [name, median(seconds)]),
);
const warm = starts["clone, warm"]!;
goals.push(
  atMost("start of the package / of a clone, warm, CPU", pairedRatio(starts["package, warm"]!, warm), 0.6),
  atMost(
    "start of the package, cold / of a clone, warm, CPU",
    pairedRatio(starts["package, cold"]!, warm),
    0.7,
  ),
);

/** CPU time for each read of a value of 1 MB, in rounds. */
async function reader(started: Started): Promise<() => Promise<number>> {
  const base = `/accounts/${started.ready.account_id}/storage/kv/namespaces`;
  const { id } = await api<{ id: string }>(started.ready, "POST", base, { title: "bench" });
  const url = new URL(`${started.ready.api}${base}/${id}/values/large`);
  const put = await fetch(url, { method: "PUT", headers, body: Buffer.alloc(1_000_000, "x") });
  if (put.status !== 200) throw new Error(`status ${put.status}`);
  return async () => {
    const before = cpuMicroseconds(started.pid);
    await load(url.origin, 300, 4, () => ({ method: "GET", path: url.pathname, headers }));
    return (cpuMicroseconds(started.pid) - before) / 300;
  };
}

const s3 = await startS3();
const { accessKeyId, secretAccessKey } = s3Credentials;
const credentials = ["--blob-access-key-id", accessKeyId, "--blob-secret-access-key", secretAccessKey];
const stores = {
  s3: await startSelvedge(["--blob-url", s3.url, ...credentials]),
  files: await startSelvedge(),
};
const readers = { s3: await reader(stores.s3), files: await reader(stores.files) };
const reads: Record<"s3" | "files", number[]> = { s3: [], files: [] };
for (let round = -1; round < rounds; round++)
  for (const name of round % 2 === 0 ? (["s3", "files"] as const) : (["files", "s3"] as const)) {
    const each = await readers[name]();
    if (round >= 0) reads[name].push(each);
  }
for (const each of Object.values(stores)) await each.stop();
await s3.stop();
printTable(
  ["read of 1 MB from", "CPU µs"],
  Object.entries(reads).map(([name, each]) => [name, median(each)]),
);
goals.push(atMost("later reads from a bucket / from files, CPU", pairedRatio(reads.s3, reads.files), 1.1));

const database = await startDatabase();
const shared = ["--database-url", database.url, "--blob-url", "postgres"];
const nodes = [await startSelvedge(shared), await startSelvedge(shared)] as const;
const zone = await api<{ id: string }>(nodes[0].ready, "POST", "/zones", { name: "bench.example" });
const records = `/zones/${zone.id}/dns_records`;
const record = (name: string) => ({
  type: "A",
  name: `${name}.bench.example`,
  content: "192.0.2.1",
  ttl: 300,
});
const resolver = new Resolver({ tries: 1, timeout: 500 });
resolver.setServers([nodes[1].ready.dns]);
const isThere = async (name: string): Promise<boolean> =>
  resolver.resolve4(`${name}.bench.example`).then(
    () => true,
    () => false,
  );
const visible: number[] = [];
for (let n = 0; n < rounds * 40; n++) {
  await api(nodes[0].ready, "POST", records, record(`seen-${n}`));
  const answeredAt = performance.now();
  while (!(await isThere(`seen-${n}`))) await delay(1);
  visible.push(performance.now() - answeredAt);
  await delay(Math.random() * 50);
}
goals.push(
  atMost("change visible at another node, ms p50", percentile(visible, 0.5), 20),
  atMost("change visible at another node, ms p99", percentile(visible, 0.99), 600),
);

const origin = new URL(nodes[0].ready.api);
let serial = 0;
const written: [string, number][] = [];
for (const writers of [1, 8]) {
  const seconds = await load(origin.origin, 200 * rounds, writers, () => ({
    method: "POST",
    path: `${origin.pathname}${records}`,
    headers,
    body: JSON.stringify(record(`w${serial++}`)),
  }));
  written.push([`PostgreSQL, ${writers}`, (200 * rounds) / seconds]);
}
for (const node of nodes) await node.stop();
await database.stop();

const backed = await startSelvedge();
const base = `/accounts/${backed.ready.account_id}/storage/kv/namespaces`;
const namespace = (await api<{ id: string }>(backed.ready, "POST", base, { title: "bench" })).id;
const filling = new DatabaseSync(join(backed.dataDir, "selvedge.db"), { timeout: 60_000 });
const insert = filling.prepare("insert into kv_entries (namespace_id, key, value) values (?, ?, ?)");
for (let n = 0; n < megabytes; n++) {
  filling.exec("begin immediate");
  for (let each = 0; each < 50; each++) {
    const value = Buffer.alloc(20_000);
    for (let at = 0; at < value.length; at += 4) value.writeUInt32LE((Math.random() * 2 ** 32) >>> 0, at);
    insert.run(namespace, Buffer.from(`filled-${n}-${each}`), value);
  }
  filling.exec("commit");
}
filling.close();
const pool = new Pool(new URL(backed.ready.api).origin, { connections: 1 });

let writes = 0;
const write = async (): Promise<void> => {
  const path = `${new URL(backed.ready.api).pathname}${base}/${namespace}/values/latency`;
  const answer = await pool.request({ method: "PUT", path, headers, body: String(writes++) });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
};
/** Runs `during` with a backup, until it is complete. */
async function whileBackedUp<T>(during: (child: ChildProcess) => Promise<T>): Promise<T> {
  const target = join(folder, "backup");
  const args = ["bin/selvedge.js", "backup", target, "--data-dir", backed.dataDir];
  const child = spawn(process.execPath, args, { stdio: "ignore", detached: true });
  const result = await during(child);
  if (child.exitCode !== 0) throw new Error(`backup ended with ${child.exitCode}`);
  rmSync(target, { recursive: true });
  return result;
}
const rates: number[] = [];
const backups: InTurns[] = [];
for (let round = 0; round < 3; round++) {
  await delay(2000); // writes slow a backup down
  const beganMs = performance.now();
  await whileBackedUp(async (child) => once(child, "exit"));
  rates.push(megabytes / ((performance.now() - beganMs) / 1000));
  backups.push(await whileBackedUp(async (child) => timesInTurns(child, write)));
}
printTable(
  ["writes", "count", "ms p50", "ms p99", "ms max", "over 50 ms"],
  (["stopped", "running"] as const).flatMap((phase) =>
    backups.map(({ [phase]: taken }) => [
      `a backup of ${megabytes} MB is ${phase}`,
      taken.length,
      percentile(taken, 0.5),
      percentile(taken, 0.99),
      taken.reduce((most, ms) => Math.max(most, ms), 0),
      taken.filter((ms) => ms > 50).length,
    ]),
  ),
);
const p99 = (phase: keyof InTurns): number[] => backups.map((each) => percentile(each[phase], 0.99));
console.log(
  `load average ${loadavg()
    .map((each) => each.toFixed(1))
    .join(", ")}`,
);
goals.push(
  atLeast("rate of a backup without writes, MB/s", median(rates), 50),
  atMost("p99 of writes, a backup runs / is stopped", pairedRatio(p99("running"), p99("stopped")), 1.5),
);
await pool.close();

const sqliteZone = await api<{ id: string }>(backed.ready, "POST", "/zones", { name: "bench.example" });
for (const writers of [1, 8]) {
  const url = new URL(backed.ready.api);
  const seconds = await load(url.origin, 200 * rounds, writers, () => ({
    method: "POST",
    path: `${url.pathname}/zones/${sqliteZone.id}/dns_records`,
    headers,
    body: JSON.stringify(record(`s${serial++}`)),
  }));
  written.push([`SQLite, ${writers}`, (200 * rounds) / seconds]);
}
await backed.stop();
rmSync(folder, { recursive: true });
printTable(["configuration writes, clients", "per second"], written);
goals.push(reported("writes of eight clients / of one, PostgreSQL", written[1]![1] / written[0]![1]));
printGoals(goals);
