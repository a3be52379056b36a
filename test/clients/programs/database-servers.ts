import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../helpers/free-port.ts";
import { environmentOf } from "./packages.ts";

/** Database servers as Debian ships them, with the user and password `selvedge`. */
export interface DatabaseServer {
  port: number;
  stop(): Promise<void>;
}
/** In PEM. */
interface Pair {
  certificate: string;
  privateKey: string;
}

/** MariaDB with the database `things`. TLS is optional for clients. */
export async function startMariaDb(installed: string, folder: string, pair: Pair): Promise<DatabaseServer> {
  const share = join(installed, "usr/share/mysql");
  const data = join(folder, "mariadb");
  const port = await freePort();
  mkdirSync(data);
  const { cert, key } = write(folder, "mariadb", pair);
  const program = join(installed, "usr/sbin/mariadbd");
  const options = ["--no-defaults", `--datadir=${data}`, `--lc-messages-dir=${share}`];
  if (process.getuid?.() === 0) options.push("--user=root");
  const sql = [
    "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n",
    ...["mysql_system_tables", "mysql_system_tables_data"].map((name) =>
      readFileSync(join(share, `${name}.sql`), "utf8"),
    ),
    "\nFLUSH PRIVILEGES;\nCREATE DATABASE things;\n",
    "CREATE USER 'selvedge'@'%' IDENTIFIED BY 'selvedge';\nGRANT ALL ON things.* TO 'selvedge'@'%';\n",
  ];
  await ended(start(installed, program, [...options, "--bootstrap"], sql.join("")));
  const listening = ["--bind-address=127.0.0.1", `--port=${port}`, "--skip-name-resolve"];
  const files = [`--socket=${folder}/mariadb.sock`, `--ssl-cert=${cert}`, `--ssl-key=${key}`];
  const child = start(installed, program, [...options, ...listening, ...files, "--max-allowed-packet=16M"]);
  await untilPrinted(child, "ready for connections");
  return { port, stop: async () => stop(child) };
}

/** Redis. With a certificate, it accepts only TLS. */
export async function startRedis(installed: string, folder: string, pair?: Pair): Promise<DatabaseServer> {
  const port = await freePort();
  const files = pair === undefined ? undefined : write(folder, "redis", pair);
  const ports =
    files === undefined
      ? ["--port", `${port}`]
      : ["--port", "0", "--tls-port", `${port}`, "--tls-cert-file", files.cert, "--tls-key-file", files.key];
  const args = [...ports, ...(files === undefined ? [] : ["--tls-auth-clients", "no"])];
  const only = ["--bind", "127.0.0.1", "--save", "", "--dir", folder, "--requirepass", "selvedge"];
  const child = start(installed, join(installed, "usr/bin/redis-server"), [...args, ...only]);
  await untilPrinted(child, "Ready to accept connections");
  return { port, stop: async () => stop(child) };
}

function write(folder: string, name: string, pair: Pair): { cert: string; key: string } {
  const files = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  writeFileSync(files.cert, pair.certificate);
  writeFileSync(files.key, pair.privateKey, { mode: 0o600 });
  return files;
}

interface Started {
  child: ChildProcess;
  /** The output so far. */
  output: { text: string };
}

function start(installed: string, program: string, args: readonly string[], input = ""): Started {
  const child = spawn(program, args, { env: environmentOf(installed), stdio: ["pipe", "pipe", "pipe"] });
  const output = { text: "" };
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output.text += chunk.toString()));
  child.stdin.end(input);
  return { child, output };
}

/** Resolves once the server has printed this text. Rejects if it exits before. */
async function untilPrinted({ child, output }: Started, text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (output.text.includes(text)) resolve();
    };
    child.stdout!.on("data", look);
    child.stderr!.on("data", look);
    child.once("error", reject);
    child.once("close", () => reject(new Error(`${child.spawnfile} ended: ${output.text}`)));
    look();
  });
}

async function ended({ child, output }: Started): Promise<void> {
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${child.spawnfile} ended with ${code}: ${output.text}`);
}

async function stop({ child }: Started): Promise<void> {
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill();
  await closed;
}
