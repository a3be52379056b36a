import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { numbersOf, startPairWriters } from "../helpers/pair-writers.ts";
import { callerOf, type Call } from "../helpers/writes.ts";

/**
 * `node test/proofs/backup.ts [MEGABYTES] [ROUNDS]`: a running platform with that much data in SQLite is backed
 * up while 50 writers write.
 *
 * 1. Latency of writes, without and with a backup in turns.
 * 2. Every backup is restored and served: whole pairs, and nothing that was acknowledged before is missing.
 * 3. `kill -9` of the backup at random times: the folder is absent, or `verify` accepts it.
 */
const megabytes = Number(process.argv[2] ?? 1000);
const rounds = Number(process.argv[3] ?? 5);
const writersMax = 50;
const run = promisify(execFile);
const environment = {
  ...process.env,
  SELVEDGE_API_TOKEN: "owner-token-for-tests", // of callerOf()
  SELVEDGE_API_RATE_LIMIT: "0",
  SELVEDGE_API_LISTEN: "127.0.0.1:0",
  SELVEDGE_EDGE_LISTEN: "127.0.0.1:0",
  SELVEDGE_DNS_LISTEN: "127.0.0.1:0",
};
const folder = mkdtempSync(join(tmpdir(), "selvedge-backup-"));
const dataDir = join(folder, "data");

const selvedge = async (...args: string[]): Promise<void> => {
  await run(process.execPath, ["bin/selvedge.js", ...args]);
};

/** Values of 20 KB, written directly, before the platform starts. */
function fill(path: string, namespace: string): void {
  const database = new DatabaseSync(path);
  const insert = database.prepare("insert into kv_entries (namespace_id, key, value) values (?, ?, ?)");
  database.exec("begin");
  for (let n = 0; n < megabytes * 50; n++) {
    const value = Buffer.alloc(20_000);
    for (let at = 0; at < value.length; at += 4) value.writeUInt32LE((Math.random() * 2 ** 32) >>> 0, at);
    insert.run(namespace, Buffer.from(`filled-${n}`), value);
  }
  database.exec("commit");
  database.close();
}

interface Latencies {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** One writer after the other, until `end` resolves. */
async function latenciesUntil(call: Call, values: string, end: Promise<unknown>): Promise<Latencies> {
  const taken: number[] = [];
  const state = { isEnded: false };
  const ended = end.finally(() => (state.isEnded = true));
  while (!state.isEnded) {
    const startedMs = performance.now();
    await call("PUT", `${values}/values/latency`, String(taken.length));
    taken.push(performance.now() - startedMs);
  }
  await ended;
  taken.sort((one, other) => one - other);
  const at = (part: number): number => Number(taken[Math.floor(taken.length * part)]!.toFixed(1));
  return { count: taken.length, p50: at(0.5), p99: at(0.99), max: Number(taken.at(-1)!.toFixed(1)) };
}

interface Running {
  api: string;
  account_id: string;
  stop(): Promise<void>;
}

async function start(data: string): Promise<Running> {
  const readyFile = join(folder, "ready.json");
  rmSync(readyFile, { force: true });
  const args = ["bin/selvedge.js", "serve", "--data-dir", data, "--ready-file", readyFile];
  const child = spawn(process.execPath, args, { env: environment, stdio: "ignore" });
  while (!existsSync(readyFile)) {
    if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`);
    await new Promise((over) => setTimeout(over, 20));
  }
  const ready = JSON.parse(readFileSync(readyFile, "utf8")) as Running;
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  return { ...ready, stop };
}

const first = await start(dataDir);
const base = `/accounts/${first.account_id}/storage/kv/namespaces`;
const namespace = (await callerOf(first.api)("POST", base, { title: "proof" })).result.id as string;
await first.stop();
fill(join(dataDir, "selvedge.db"), namespace);
const server = await start(dataDir);
const call = callerOf(server.api);
const values = `${base}/${namespace}`;
const walBytes = (): number => statSync(join(dataDir, "selvedge.db-wal")).size;

console.log(`1. latency of writes in ms, ${megabytes} MB`);
for (let round = 0; round < 3; round++) {
  const target = join(folder, `latency-${round}`);
  const startedMs = performance.now();
  const during = await latenciesUntil(call, values, selvedge("backup", target, "--data-dir", dataDir));
  const seconds = (performance.now() - startedMs) / 1000;
  const quiet = await latenciesUntil(call, values, new Promise((over) => setTimeout(over, seconds * 1000)));
  console.log({
    round,
    backupSeconds: Number(seconds.toFixed(1)),
    quiet,
    during,
    walMegabytes: walBytes() / 1e6,
  });
  rmSync(target, { recursive: true });
}

console.log(`2. ${rounds} backups with ${writersMax} writers`);
for (let round = 0; round < rounds; round++) {
  const writers = startPairWriters(call, values, writersMax);
  while (writers.acknowledged().includes(0)) await new Promise((over) => setTimeout(over, 50));
  const before = writers.acknowledged();
  const target = join(folder, `writers-${round}`);
  await selvedge("backup", target, "--data-dir", dataDir);
  const sent = await writers.stop();
  await selvedge("backup", "verify", target);
  const restored = join(folder, `restored-${round}`);
  await selvedge("restore", target, "--data-dir", restored);
  const other = await start(restored);
  const numbers = await numbersOf(callerOf(other.api), values, writersMax);
  await other.stop();
  const wrong = numbers.filter((n, writer) => n < before[writer]! || n > sent[writer]!);
  if (wrong.length > 0) throw new Error(`${wrong.length} writers are not as they were at one time`);
  console.log({ round, writes: sent.reduce((total, n) => total + n, 0) });
  for (const each of [target, restored]) rmSync(each, { recursive: true });
}

console.log("3. kill -9 at random");
let whole = 0;
for (let round = 0; round < rounds * 4; round++) {
  const target = join(folder, `killed-${round}`);
  const child = spawn(process.execPath, ["bin/selvedge.js", "backup", target, "--data-dir", dataDir]);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  await new Promise((over) => setTimeout(over, Math.random() * (4000 + megabytes * 10)));
  child.kill("SIGKILL");
  await ended;
  if (existsSync(target)) {
    await selvedge("backup", "verify", target);
    whole += 1;
  }
  for (const name of readdirSync(folder))
    if (name.startsWith("killed-")) rmSync(join(folder, name), { recursive: true });
}
console.log({ killed: rounds * 4, whole });
await server.stop();
rmSync(folder, { recursive: true });
