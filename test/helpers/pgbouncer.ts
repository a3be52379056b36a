import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import type { TestPostgres } from "./postgres.ts";

/** Debian has it in a folder of the administrator. */
const program = "/usr/sbin/pgbouncer";
export const hasPgBouncer = spawnSync(program, ["--version"]).status === 0;

export interface PgBouncer {
  /** The URL of the database through it. */
  urlOf(url: string): string;
  stop(): Promise<void>;
}

/** PgBouncer before a server, in transaction mode, with fewer connections to the server than a node's pool has. */
export async function startPgBouncer({ port, dataDir }: TestPostgres): Promise<PgBouncer> {
  const own = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "selvedge-pgbouncer-"));
  chmodSync(folder, 0o755);
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${port} user=selvedge password=selvedge
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_login_retry = 1
`,
  );
  // It refuses to run as root.
  const { uid, gid } = statSync(dataDir);
  const child = spawn(program, [file], {
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
    stdio: "ignore",
    cwd: "/",
  });
  const exited = once(child, "exit");
  while (!(await accepts(own))) {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended with ${child.exitCode}`);
    await delay(10);
  }
  return {
    urlOf: (url) => url.replace(`:${port}/`, `:${own}/`),
    async stop() {
      child.kill("SIGKILL");
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).then((is) => {
    socket.destroy();
    return is as boolean;
  });
}
