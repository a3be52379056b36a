import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { timesInTurns } from "../../bench/lib/in-turns.ts";
import { restoreLog } from "../../src/platform/log-shipping/restore-log.ts";
import { FolderArchiveStore } from "../../src/platform/storage/archive/folder.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { numbersOf, startPairWriters } from "../helpers/pair-writers.ts";
import { callerOf } from "../helpers/writes.ts";

/**
 * `node test/proofs/backup.ts [MEGABYTES] [ROUNDS]`: a running platform with that much data in SQLite is backed
 * up while 50 writers write.
 *
 * 1. Latency of writes, while a backup runs and while a signal stops it, in turns.
 * 2. Every backup is restored and served: whole pairs, and nothing that was acknowledged before is missing.
 * 3. `kill -9` of the backup at random times: the folder is absent, or `verify` accepts it.
 * 4. Restores from the shipped log to each of 100 acknowledged writes have exactly those before it.
 */
const megabytes = Number(process.argv[2] ?? 1000);
const rounds = Number(process.argv[3] ?? 5);
const writersMax = 50;
const writesMax = 100;
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

const isChain = (name: unknown): boolean => String(name).endsWith("chain.json");
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

interface Running {
  api: string;
  account_id: string;
  pid: number;
  stop(): Promise<void>;
  /** As a loss of power of the process: SIGKILL. */
  kill(): Promise<void>;
}

async function start(data: string, more: string[] = []): Promise<Running> {
  const readyFile = join(folder, "ready.json");
  rmSync(readyFile, { force: true });
  const args = ["bin/selvedge.js", "serve", "--data-dir", data, "--ready-file", readyFile, ...more];
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
  const kill = async (): Promise<void> => {
    process.kill(ready.pid, "SIGKILL");
    await once(child, "exit");
  };
  return { ...ready, stop, kill };
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

const at = (times: readonly number[], part: number): number =>
  Number(times.toSorted((one, other) => one - other)[Math.floor(times.length * part)]!.toFixed(1));
const summary = (times: readonly number[]) => ({
  count: times.length,
  p50: at(times, 0.5),
  p99: at(times, 0.99),
  max: Number(Math.max(...times).toFixed(1)),
  over50: times.filter((ms) => ms > 50).length,
});

console.log(`1. latency of writes in ms, ${megabytes} MB`);
for (let round = 0; round < 3; round++) {
  const target = join(folder, `latency-${round}`);
  const startedMs = performance.now();
  const args = ["bin/selvedge.js", "backup", target, "--data-dir", dataDir];
  const child = spawn(process.execPath, args, { stdio: "ignore", detached: true });
  let count = 0;
  const { running, stopped } = await timesInTurns(child, () =>
    call("PUT", `${values}/values/latency`, String(count++)),
  );
  if (child.exitCode !== 0) throw new Error(`backup ended with ${child.exitCode}`);
  console.log({
    seconds: Number(((performance.now() - startedMs) / 1000).toFixed(1)),
    stopped: summary(stopped),
    running: summary(running),
    p99Ratio: Number((at(running, 0.99) / at(stopped, 0.99)).toFixed(2)),
    walMegabytes: walBytes() / 1e6,
    load: loadavg().map((each) => Number(each.toFixed(1))),
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

console.log(`4. restores to each of ${writesMax} acknowledged writes, also after kill -9`);
const counted = join(folder, "counted");
const shipped = join(folder, "shipped");
let node = await start(counted, ["--backup-folder", shipped, "--backup-log", "1s"]);
const countedBase = `/accounts/${node.account_id}/storage/kv/namespaces`;
const { id } = (await callerOf(node.api)("POST", countedBase, { title: "counted" })).result as { id: string };
while (
  !existsSync(join(shipped, "log")) ||
  !readdirSync(join(shipped, "log"), { recursive: true }).some(isChain)
)
  await new Promise((over) => setTimeout(over, 50));
/** When each write was acknowledged. */
const acknowledgedMs: number[] = [];
for (let n = 0; n < writesMax; n++) {
  if (n === writesMax >> 1) {
    await node.kill();
    node = await start(counted, ["--backup-folder", shipped, "--backup-log", "1s"]);
  }
  const { status } = await callerOf(node.api)("PUT", `${countedBase}/${id}/values/n-${n}`, String(n));
  if (status !== 200) throw new Error(`status ${status}`);
  acknowledgedMs.push(Date.now());
  while (Date.now() === acknowledgedMs[n]) await new Promise((over) => setTimeout(over, 1));
}
await node.stop();
for (const [n, toMs] of acknowledgedMs.entries()) {
  const to = join(folder, "restored-to");
  const into = {
    dataDir: to,
    databasePath: join(to, "selvedge.db"),
    blobs: new FileBlobs(join(to, "blobs")),
  };
  await restoreLog({ files: new FolderArchiveStore(shipped).files, toMs, ...into });
  const database = new DatabaseSync(into.databasePath, { readOnly: true });
  const { count } = database.prepare("select count(*) as count from kv_entries").get() as { count: number };
  database.close();
  if (count !== n + 1) throw new Error(`the restore to write ${n} has ${count} values instead of ${n + 1}`);
  rmSync(to, { recursive: true });
}
console.log({ restores: acknowledgedMs.length });
rmSync(folder, { recursive: true });
