import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { freePort } from "./free-port.ts";
import { clusterFolder, migratedName, newCluster, serverIn, urlOf } from "./postgres-cluster.ts";

export interface TestPostgres {
  port: number;
  dataDir: string;
  /** The URL of a fresh, empty database. */
  createDatabase(): Promise<string>;
  /** The URL of a fresh database with today's schema, without the time of its migrations. */
  createMigrated(): Promise<string>;
  /** Copies a database as it is. Returns the function that puts the copy in its place, and ends all connections: what was committed since then is lost. */
  save(url: string): Promise<() => Promise<void>>;
  /** Ends the server in order, with all of its connections, as `pg_ctl stop --mode=fast` does. */
  end(): Promise<void>;
  /** Ends the server at once, with all of its connections; `start` brings it back with what had been committed. */
  crash(): Promise<void>;
  /** Ends the server and its processes with SIGKILL; `start` recovers what had been committed. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Stops its processes in what they do, until `resume`: connections are accepted by the system, and nothing is answered. */
  pause(): void;
  resume(): void;
  /** From now on it also speaks TLS, with this certificate; both are in PEM. */
  secure(pair: { certificate: string; privateKey: string }): Promise<void>;
  stop(): Promise<void>;
}

/** A real PostgreSQL server of its own, from the packaged binaries. */
export async function startPostgres(): Promise<TestPostgres> {
  const parent = clusterFolder();
  const port = await freePort();
  const dataDir = join(parent, "data");
  await newCluster(dataDir);
  const postgres = serverIn(dataDir, port);
  await postgres.start();
  /** Sends a signal to the server and to its processes for connections; returns their ids. */
  const signal = (name: NodeJS.Signals): number[] => {
    const [pid] = readFileSync(join(dataDir, "postmaster.pid"), "utf8").split("\n");
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    const all = [pid, ...children].map(Number);
    for (const each of all) if (existsSync(`/proc/${each}`)) process.kill(each, name);
    return all;
  };
  const ended = async (pids: readonly number[]): Promise<void> => {
    while (pids.some((pid) => existsSync(`/proc/${pid}`))) await new Promise((go) => setTimeout(go, 10));
    isUp = false;
  };
  const endBy = async (name: NodeJS.Signals): Promise<void> => {
    const [pid] = readFileSync(join(dataDir, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), name);
    await ended([Number(pid)]);
  };
  /** Runs statements that need a database without connections. */
  const without = async (name: string, ...statements: readonly string[]): Promise<void> => {
    const client = new Client(urlOf(port, "postgres"));
    await client.connect();
    const isOpen = (open: boolean) => client.query(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS ${open}`);
    await isOpen(false);
    // A connection that was being opened appears among the others only later.
    const end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1";
    while ((await client.query(end, [name])).rowCount! > 0);
    for (const each of statements) await client.query(each);
    await isOpen(true);
    await client.end();
  };
  let databases = 0;
  let isUp = true;
  const create = async (template: string): Promise<string> => {
    const name = `test_${++databases}`;
    const client = new Client(urlOf(port, "postgres"));
    await client.connect();
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    await client.end();
    return urlOf(port, name);
  };
  return {
    port,
    dataDir,
    createDatabase: () => create("template1"),
    createMigrated: () => create(migratedName),
    async save(url) {
      const name = new URL(url).pathname.slice(1);
      const copy = `${name}_saved_${++databases}`;
      await without(name, `CREATE DATABASE "${copy}" TEMPLATE "${name}"`);
      return () =>
        without(
          name,
          `ALTER DATABASE "${name}" RENAME TO "${copy}_lost"`,
          `ALTER DATABASE "${copy}" RENAME TO "${name}"`,
        );
    },
    end: () => endBy("SIGINT"),
    crash: () => endBy("SIGQUIT"),
    kill: () => ended(signal("SIGKILL")),
    async start() {
      await postgres.start();
      isUp = true;
    },
    pause: () => void signal("SIGSTOP"),
    resume: () => void (isUp && signal("SIGCONT")),
    async secure({ certificate, privateKey }) {
      const url = urlOf(port, "postgres");
      const client = new Client(url);
      await client.connect();
      // The server's user has to own the key.
      for (const [name, text] of Object.entries({ "server.crt": certificate, "server.key": privateKey }))
        await client.query(
          `COPY (SELECT unnest(string_to_array('${text.trim()}', E'\n'))) TO PROGRAM 'umask 077; cat > ${name}'`,
        );
      await client.query("ALTER SYSTEM SET ssl = on");
      await client.query("SELECT pg_reload_conf()");
      await client.end();
      for (let isSecure = false; !isSecure;) {
        const next = new Client(url);
        await next.connect();
        const { rows } = await next.query<{ ssl: string }>("SHOW ssl");
        isSecure = rows[0]!.ssl === "on";
        await next.end();
      }
    },
    async stop() {
      if (isUp) await postgres.stop();
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

/** A port of this machine without a listener. */
