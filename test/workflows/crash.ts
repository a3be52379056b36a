import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "pg";
import type { Ready } from "../../src/ready.ts";

/** Workflows whose processes are killed, and an outside witness that records their steps. */
const token = "token-of-the-crash-proof";
const steps = 10;
const stepMs = 200;
const noLimit = ["--workflow-create-rate", "0", "--workflow-account-create-rate", "0"];

/** Records the start of each step, and each result that reached the workflow's code. */
export class Witness {
  readonly #server: Server;
  readonly #begun = new Map<string, number>();
  readonly #acknowledged = new Map<string, number>();
  /** Steps that started although their result had been returned before. */
  readonly violations: string[] = [];
  lastBegunAt = 0;
  firstBegunAfter: { since: number; at: number } | undefined;

  constructor() {
    this.#server = createServer((request, response) => {
      const [, what, id, step, at] = request.url!.split("/");
      const key = `${id}/${step}`;
      if (what === "ack") this.#acknowledged.set(key, Date.now());
      else {
        // Requests of a suspended process may arrive late: their time of sending counts.
        if (Number(at) > (this.#acknowledged.get(key) ?? Infinity)) this.violations.push(key);
        this.#begun.set(key, (this.#begun.get(key) ?? 0) + 1);
        this.lastBegunAt = performance.now();
        if (this.firstBegunAfter !== undefined) this.firstBegunAfter.at ||= this.lastBegunAt;
      }
      response.end();
    });
    this.#server.keepAliveTimeout = 60_000;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  /** Steps that started more than once, because their process died. */
  get repeated(): number {
    return [...this.#begun.values()].filter((count) => count > 1).length;
  }
  get begunCount(): number {
    return this.#begun.size;
  }
  get acknowledgedCount(): number {
    return this.#acknowledged.size;
  }
  /** Resolves once this number of further steps is acknowledged. */
  async acknowledges(more: number): Promise<void> {
    const count = this.acknowledgedCount + more;
    while (this.acknowledgedCount < count) await pause(10);
  }
  forget(): void {
    this.#begun.clear();
    this.#acknowledged.clear();
  }
  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** One `selvedge serve` that can be killed and restarted. */
export class Node {
  readonly #args: readonly string[];
  readonly #inside: readonly string[];
  #child: ChildProcess | undefined;
  #ready: Ready | undefined;

  /** `inside` is a command that runs another command. */
  constructor(args: readonly string[], inside: readonly string[] = []) {
    this.#args = args;
    this.#inside = inside;
  }

  async start(): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), "crash-ready-"));
    const readyFile = join(folder, "ready.json");
    const listeners = ["api", "edge", "dns"].flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);
    const main = join(import.meta.dirname, "../../bin/selvedge.js");
    const [command, ...args] = [...this.#inside, process.execPath, main, "serve", ...listeners, ...noLimit];
    const child = spawn(command!, [...args, "--ready-file", readyFile, ...this.#args], {
      env: {
        ...process.env,
        SELVEDGE_API_TOKEN: token,
        SELVEDGE_API_RATE_LIMIT: "0",
        SELVEDGE_LOG_LEVEL: process.env["SELVEDGE_LOG_LEVEL"] ?? "error",
      },
      stdio: ["ignore", "ignore", "inherit"],
    });
    this.#child = child;
    while (!existsSync(readyFile)) {
      if (child.exitCode !== null) throw new Error("serve ended before it was ready");
      await pause(10);
    }
    this.#ready = JSON.parse(readFileSync(readyFile, "utf8")) as Ready;
    rmSync(folder, { recursive: true });
  }

  get pid(): number {
    return this.#ready!.pid;
  }

  /** Process ids of this node's workerd processes. */
  cells(): number[] {
    return descendants(this.pid).filter((pid) => commandOf(pid).includes("workerd"));
  }

  /** Sends SIGKILL; resolves when the processes are gone. */
  async kill(what: "engine" | "cells" | "both"): Promise<void> {
    const cells = what === "engine" ? [] : this.cells();
    for (const pid of cells) killHard(pid);
    if (what === "cells") return;
    const exited = new Promise((resolve) => this.#child!.once("exit", resolve));
    killHard(this.pid);
    await exited;
  }

  async stop(): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.#child!.once("exit", resolve));
    process.kill(this.pid, "SIGTERM");
    await exited;
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async call(method: string, path: string, body?: unknown): Promise<any> {
    const response = await fetch(`${this.#ready!.api}/accounts/${this.#ready!.account_id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined || body instanceof FormData ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: body instanceof FormData ? body : JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { success: boolean; result: unknown; errors: unknown };
    if (!answer.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.errors)}`);
    return answer.result;
  }

  /** Uploads the workflow whose steps report to the witness. */
  async deploy(witness: Witness): Promise<void> {
    const form = new FormData();
    form.set("metadata", JSON.stringify({ main_module: "main.js", compatibility_date: "2026-11-01" }));
    const code = `import { WorkflowEntrypoint } from "cloudflare:workers";
const report = async (what, id, step) => { await (await fetch("${witness.url}/" + what + "/" + id + "/" + step + "/" + Date.now())).text(); };
export class Main extends WorkflowEntrypoint {
  async run({ instanceId: id }, step) {
    let sum = 0;
    for (let i = 0; i < ${steps}; i++) {
      sum += await step.do("s" + i, async () => {
        await report("begin", id, i);
        await new Promise((resolve) => setTimeout(resolve, ${stepMs}));
        return i;
      });
      await report("ack", id, i);
    }
    return sum;
  }
}
export default {};`;
    form.set("main.js", new File([code], "main.js", { type: "application/javascript+module" }));
    await this.call("PUT", "/workers/scripts/crash", form);
    await this.call("PUT", "/workflows/crash", { script_name: "crash", class_name: "Main" });
  }

  /** Creates instances and returns their ids. Resolves once all are durable. */
  async create(prefix: string, count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
    for (let at = 0; at < count; at += 100) {
      const bodies = ids.slice(at, at + 100).map((instance_id) => ({ instance_id }));
      await this.call("POST", "/workflows/crash/instances/batch", bodies);
    }
    return ids;
  }

  async counts(): Promise<Record<string, number>> {
    return ((await this.call("GET", "/workflows/crash")) as { instances: Record<string, number> }).instances;
  }

  /** Resolves once all instances are complete. */
  async completed(total: number, timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const counts = await this.counts();
      if (counts["complete"] === total) return;
      if (performance.now() > end) throw new Error(`Not all are complete: ${JSON.stringify(counts)}`);
      await pause(50);
    }
  }
}

export interface Round {
  readyMs: number;
  firstStepMs: number;
  doneMs: number;
  repeated: number;
}

/** One round: instances run, a process is killed midway, and all instances must complete. */
export async function crashRound(
  node: Node,
  witness: Witness,
  options: {
    name: string;
    instances: number;
    killAfterMs: number;
    what: "engine" | "cells" | "both";
    before: number;
  },
): Promise<Round> {
  witness.forget();
  await node.create(options.name, options.instances);
  await pause(options.killAfterMs);
  const killedAt = performance.now();
  await node.kill(options.what);
  witness.firstBegunAfter = { since: killedAt, at: 0 };
  const startedAt = performance.now();
  if (options.what !== "cells") await node.start();
  const readyMs = performance.now() - startedAt;
  await node.completed(options.before + options.instances, 120_000);
  const doneMs = performance.now() - startedAt;
  if (witness.violations.length > 0)
    throw new Error(
      `Steps ran again after their result had come back: ${witness.violations.slice(0, 5).join(", ")}`,
    );
  if (witness.begunCount !== options.instances * steps)
    throw new Error(`${witness.begunCount} of ${options.instances * steps} steps ran`);
  return { readyMs, firstStepMs: witness.firstBegunAfter.at - startedAt, doneMs, repeated: witness.repeated };
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function killHard(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has exited
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function descendants(root: number): number[] {
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
  const all: number[] = [];
  const queue = [root];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    const below = children.get(pid) ?? [];
    all.push(...below);
    queue.push(...below);
  }
  return all;
}

/** The numbers of shards that live nodes hold, in ascending order. */
export async function shardsByOwner(database: Client): Promise<number[]> {
  const { rows } = await database.query<{ count: string }>(
    "select count(*) as count from workflow_shards where lease_until > now() group by owner order by count",
  );
  return rows.map(({ count }) => Number(count));
}

/** Resolves once two nodes hold half of the shards each. */
export async function areEven(database: Client): Promise<void> {
  while ((await shardsByOwner(database)).join() !== "32,32") await pause(50);
}
