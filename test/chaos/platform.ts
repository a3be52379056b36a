import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Ready } from "../../src/ready.ts";
import { freePort } from "../helpers/free-port.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { ownerToken } from "../helpers/server.ts";
import { ends } from "../../bench/lib/child.ts";
import { smallFolder, type SmallFolder } from "./small-folder.ts";
import { calm, type StoreWeather } from "./store-process.ts";

/** Two nodes on one PostgreSQL and one store, each part a process that can be killed. */
export interface Platform {
  nodes: readonly [ChaosNode, ChaosNode];
  postgres: TestPostgres;
  databaseUrl: string;
  store: Store;
  /** The folder of the logs. */
  folder: string;
  /** Ends everything, and deletes the logs unless they are wanted. */
  stop(keepLogs: boolean): Promise<void>;
}

/** How long an API call may take, in milliseconds. A query on PostgreSQL gets a second less. */
export const callMsMax = 12_000;

/** One `selvedge serve`, with the same addresses in each of its lives. */
export class ChaosNode {
  readonly name: string;
  readonly folder: SmallFolder;
  readonly logFile: string;
  /** Faults of the process itself. */
  readonly faults: string[] = [];
  readonly #args: readonly string[];
  readonly #environment: Record<string, string>;
  #child: ChildProcess | undefined;
  ready!: Ready;

  constructor(
    name: string,
    args: readonly string[],
    environment: Record<string, string>,
    parts: { folder: SmallFolder; logFile: string },
  ) {
    this.name = name;
    this.folder = parts.folder;
    process.once("exit", () => parts.folder.remove());
    this.logFile = parts.logFile;
    this.#args = ["--data-dir", join(parts.folder.path, "data"), ...args];
    this.#environment = environment;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts it, and again if it gives up because the database is away. */
  async start(): Promise<void> {
    for (const end = performance.now() + 90_000; !(await this.#startOnce());) {
      if (performance.now() > end) throw new Error(`${this.name} does not start: see ${this.logFile}`);
      await delay(500);
    }
  }

  async #startOnce(): Promise<boolean> {
    const readyFile = join(this.folder.path, "..", `${this.name}-ready.json`);
    rmSync(readyFile, { force: true });
    const args = ["bin/selvedge.js", "serve", "--ready-file", readyFile, ...this.#args];
    const child = ends(
      spawn(process.execPath, args, {
        env: { ...process.env, ...this.#environment },
        stdio: ["ignore", "pipe", "pipe"],
      }),
    );
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        const text = chunk.toString();
        appendFileSync(this.logFile, text);
        if (/uncaught|was not caught/.test(text)) this.faults.push(`${this.name}: ${text.slice(0, 2000)}`);
      });
    while (!existsSync(readyFile)) {
      if (!this.isRunning) return false;
      await delay(10);
    }
    this.ready = JSON.parse(readFileSync(readyFile, "utf8")) as Ready;
    return true;
  }

  signal(name: NodeJS.Signals): void {
    if (this.isRunning) process.kill(this.#child!.pid!, name);
  }

  async kill(): Promise<void> {
    const exited = once(this.#child!, "exit");
    this.signal("SIGKILL");
    await exited;
  }

  /** Stops it with SIGTERM, which has to succeed. */
  async terminate(): Promise<void> {
    if (!this.isRunning) return;
    const exited = once(this.#child!, "exit");
    this.signal("SIGTERM");
    const [code, signal] = (await exited) as [number | null, string | null];
    if (code !== 0) this.faults.push(`${this.name} ended with ${code ?? signal} after SIGTERM`);
  }

  /** 200 of /readyz, or which parts are not ready; "away" without an answer. */
  async readiness(): Promise<string> {
    try {
      const answer = await fetch(new URL("/readyz", this.ready.api), {
        signal: AbortSignal.timeout(3000),
      });
      const body = (await answer.json()) as { not_ready?: string[] };
      return answer.status === 200 ? "ready" : (body.not_ready ?? []).join("+");
    } catch {
      return "away";
    }
  }

  /** Exceptions and rejections that nothing has caught in this life of the process. */
  async uncaught(): Promise<number> {
    const text = await (await fetch(this.ready.metrics!)).text();
    const counts = [...text.matchAll(/^selvedge_uncaught_exceptions_total\{[^}]*\} (\d+)/gm)];
    if (counts.length === 0) throw new Error("no metric of uncaught exceptions");
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }
}

export class Store {
  readonly #child: ChildProcess;
  constructor(child: ChildProcess) {
    this.#child = child;
  }
  async set(weather: StoreWeather): Promise<void> {
    this.#child.send(weather);
    await once(this.#child, "message");
  }
  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }
}

/** Starts everything. `parent` gets the logs and data folders. */
export async function startPlatform(
  parent = mkdtempSync(join(tmpdir(), "selvedge-chaos-")),
): Promise<Platform> {
  const child = fork(join(import.meta.dirname, "store-process.ts"), { stdio: "inherit" });
  const [storeAccess] = (await once(child, "message")) as [
    { url: string; accessKeyId: string; secretAccessKey: string },
  ];
  const postgres = await startPostgres();
  const databaseUrl = await postgres.createDatabase();
  const environment = {
    SELVEDGE_ACCOUNT_ID: "0123456789abcdef0123456789abcdef",
    SELVEDGE_API_TOKEN: ownerToken,
    SELVEDGE_API_RATE_LIMIT: "0",
    SELVEDGE_LOG_LEVEL: "warn",
    SELVEDGE_DATABASE_URL: databaseUrl,
    SELVEDGE_DATABASE_TIMEOUT_SECONDS: String(callMsMax / 1000 - 2),
    SELVEDGE_BLOB_URL: storeAccess.url,
    SELVEDGE_BLOB_ACCESS_KEY_ID: storeAccess.accessKeyId,
    SELVEDGE_BLOB_SECRET_ACCESS_KEY: storeAccess.secretAccessKey,
    SELVEDGE_BLOB_CACHE_MEGABYTES: "16",
    SELVEDGE_DELIVERY_URL: "http://images.chaos.localhost",
    SELVEDGE_PRIVATE_NETWORKS: "all",
    SELVEDGE_CELLS: "1",
    SELVEDGE_WORKFLOW_CELLS: "1",
    SELVEDGE_IMAGE_SLOTS: "1",
  };
  const nodeOf = async (name: string): Promise<ChaosNode> => {
    const listen: string[] = [];
    for (const each of ["api", "edge", "dns", "metrics"])
      listen.push(`--${each}-listen`, `127.0.0.1:${await freePort()}`);
    const path = join(parent, name);
    mkdirSync(path);
    const parts = { folder: smallFolder(path), logFile: join(parent, `${name}.log`) };
    return new ChaosNode(name, listen, environment, parts);
  };
  const nodes = [await nodeOf("one"), await nodeOf("two")] as const;
  // The first creates the owner.
  for (const node of nodes) await node.start();
  const store = new Store(child);
  const stop = async (keepLogs: boolean): Promise<void> => {
    for (const node of nodes) await node.terminate();
    for (const node of nodes) node.folder.remove();
    await store.stop();
    await postgres.stop();
    if (!keepLogs) rmSync(parent, { recursive: true, force: true });
  };
  await store.set(calm);
  return { nodes, postgres, databaseUrl, store, folder: parent, stop };
}
