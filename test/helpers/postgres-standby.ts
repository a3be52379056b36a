import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chownSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { freePort } from "./free-port.ts";
import { serverFlags } from "./postgres-cluster.ts";

export interface Standby {
  port: number;
  /** It becomes a primary of its own. Resolves when it accepts writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A streaming standby of the server with this data folder and port. The primary confirms a commit only when the
 * standby has written it, so a failover loses nothing that was acknowledged.
 */
export async function startStandby(primary: { dataDir: string; port: number }): Promise<Standby> {
  const port = await freePort();
  const dataDir = `${primary.dataDir}-standby`;
  await copyOf(primary, dataDir);
  const { uid, gid } = statSync(dataDir);
  for (const each of ["backup_label", "standby.signal"]) chownSync(join(dataDir, each), uid, gid);
  const [pid] = readFileSync(join(primary.dataDir, "postmaster.pid"), "utf8").split("\n");
  const child = spawn(readlinkSync(`/proc/${pid}/exe`), ["-D", dataDir, "-p", String(port), ...serverFlags], {
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  await using admin = await connected(primary.port);
  await admin.client.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await admin.client.query("SELECT pg_reload_conf()");
  const follows = "select from pg_stat_replication where state = 'streaming' and sync_state = 'sync'";
  while ((await admin.client.query(follows)).rowCount === 0) {
    if (child.exitCode !== null) throw new Error(`the standby ended with ${child.exitCode}`);
    await delay(20);
  }
  return {
    port,
    async promote() {
      await using standby = await connected(port);
      await standby.client.query("select pg_promote(true)");
    },
    async stop() {
      child.kill("SIGQUIT");
      await exited;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function connected(port: number): Promise<AsyncDisposable & { client: Client }> {
  const client = new Client(`postgres://selvedge:selvedge@127.0.0.1:${port}/postgres`);
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.end() };
}

/** Copies the files of a running server as the PostgreSQL manual describes it ("Low Level API" of base backups). */
async function copyOf({ dataDir, port }: { dataDir: string; port: number }, target: string): Promise<void> {
  await using admin = await connected(port);
  await admin.client.query("select pg_backup_start('standby', true)");
  execFileSync("cp", ["-a", dataDir, target]);
  const { rows } = await admin.client.query<{ labelfile: string }>("select * from pg_backup_stop(false)");
  for (const each of ["postmaster.pid", "postmaster.opts"]) rmSync(join(target, each), { force: true });
  writeFileSync(join(target, "backup_label"), rows[0]!.labelfile);
  writeFileSync(join(target, "standby.signal"), "");
  const source = `host=127.0.0.1 port=${port} user=selvedge password=selvedge`;
  appendFileSync(join(target, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`);
}
