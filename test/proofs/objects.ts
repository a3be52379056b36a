import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { benchToken, startSelvedge, type Started } from "../../bench/lib/child.ts";
import { processTree } from "../../bench/lib/tree.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { uploadForm } from "../runtime/platform.ts";
import { ledgerScript } from "./ledger-script.ts";

/*
 * Durable Objects under kills and stops, while they are written to. No acknowledged write may be lost or made twice, and
 * once an object's new instance has answered, its previous one must never answer again. By default 50 rounds:
 * `node test/proofs/objects.ts [rounds]`.
 */
export interface ObjectsReport {
  rounds: Record<Blow, number>;
  acknowledged: number;
  /** Writes without an answer: they may have been made. */
  unanswered: number;
  lost: number;
  doubled: number;
  /** Answers of an instance after its successor had answered. */
  late: string[];
  instances: number;
}

const blows = ["kill cell", "stop and go on", "stop and kill", "kill cell", "kill server"] as const;
type Blow = (typeof blows)[number];

const objects = 4;
const writersOfObject = 2;

interface Writer {
  object: string;
  name: string;
  acknowledged: Set<number>;
  /** Numbers whose answer did not come. */
  unanswered: number;
}

class Proof {
  server!: Started;
  readonly #dataDir: string | undefined;
  readonly writers: Writer[] = [];
  readonly late: string[] = [];
  readonly #host: { name: string } = { name: "" };
  /** The newest instance that has answered, by object. */
  readonly #newest = new Map<string, number>();
  #isOver = false;
  instances = 0;

  constructor(dataDir?: string) {
    this.#dataDir = dataDir;
  }

  async start(): Promise<void> {
    this.server = await startSelvedge([], this.#dataDir);
    const { api, account_id } = this.server.ready;
    const call = async (method: string, path: string, body?: FormData): Promise<{ subdomain: string }> => {
      const headers = { authorization: `Bearer ${benchToken}` };
      const response = await fetch(`${api}/accounts/${account_id}${path}`, {
        method,
        headers,
        ...(body && { body }),
      });
      if (!response.ok) throw new Error(await response.text());
      return ((await response.json()) as { result: { subdomain: string } }).result;
    };
    await call("PUT", "/workers/scripts/ledgers", uploadForm(ledgerScript));
    this.#host.name = `ledgers.${(await call("GET", "/workers/subdomain")).subdomain}.workers.localhost`;
  }

  async ask<T>(path: string): Promise<T> {
    const { status, body } = await requestEdge(this.server.ready.edge, this.#host.name, path);
    if (status !== 200) throw new Error(`${status}`);
    return JSON.parse(body) as T;
  }

  write(): Promise<void>[] {
    for (let object = 0; object < objects; object++)
      for (let i = 0; i < writersOfObject; i++)
        this.writers.push({ object: `o${object}`, name: `w${i}`, acknowledged: new Set(), unanswered: 0 });
    return this.writers.map(async (writer) => this.#writeOn(writer));
  }

  async #writeOn(writer: Writer): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      const before = this.#newest.get(writer.object) ?? 0;
      try {
        const { instance } = await this.ask<{ instance: number }>(
          `/${writer.object}/write/${writer.name}/${n}`,
        );
        writer.acknowledged.add(n);
        this.#note(writer, n, instance, before);
      } catch {
        writer.unanswered++;
        await delay(20);
      }
    }
  }

  /** `before` is the newest instance that had answered when the write was sent. */
  #note({ object, name }: Writer, n: number, instance: number, before: number): void {
    if (instance < before) this.late.push(`${object} ${name} ${n}: instance ${instance} after ${before}`);
    if (instance <= (this.#newest.get(object) ?? 0)) return;
    this.#newest.set(object, instance);
    this.instances++;
  }

  /** Resolves when each writer has had answers since. */
  async progress(): Promise<void> {
    const counts = this.writers.map(({ acknowledged }) => acknowledged.size);
    const deadline = Date.now() + 60_000;
    while (this.writers.some(({ acknowledged }, i) => acknowledged.size < counts[i]! + 3)) {
      if (Date.now() > deadline) throw new Error("the writers had no answers for a minute");
      await delay(10);
    }
  }

  async strike(blow: Blow, stoppedMs: number): Promise<void> {
    if (blow === "kill server") {
      const { dataDir } = this.server;
      await this.server.kill();
      this.server = await startSelvedge([], dataDir);
      return;
    }
    const pids = objectCells(this.server.pid);
    if (blow === "kill cell") {
      signal(pids, "SIGKILL");
      return;
    }
    signal(pids, "SIGSTOP");
    await delay(stoppedMs);
    signal(pids, blow === "stop and kill" ? "SIGKILL" : "SIGCONT");
  }

  async end(writing: readonly Promise<void>[]): Promise<void> {
    this.#isOver = true;
    await Promise.all(writing);
  }
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      process.kill(pid, name);
    } catch {
      // it has ended
    }
}

/** The processes below a server that have databases of objects open. */
function objectCells(server: number): number[] {
  return processTree(server).filter((pid) => {
    try {
      if (pid === server || readFileSync(`/proc/${pid}/comm`, "utf8").trim() !== "workerd") return false;
      return readdirSync(`/proc/${pid}/fd`).some((fd) =>
        readlinkSync(`/proc/${pid}/fd/${fd}`).includes(".1.sqlite"),
      );
    } catch {
      return false;
    }
  });
}

/** Runs the proof on a server of its own. Cells stay stopped for `stoppedMs`. */
export async function prove(rounds: number, stoppedMs = 3000): Promise<ObjectsReport> {
  const proof = new Proof();
  await proof.start();
  const report: ObjectsReport = {
    rounds: { "kill cell": 0, "stop and go on": 0, "stop and kill": 0, "kill server": 0 },
    acknowledged: 0,
    unanswered: 0,
    lost: 0,
    doubled: 0,
    late: proof.late,
    instances: 0,
  };
  try {
    const writing = proof.write();
    for (let round = 0; round < rounds; round++) {
      await proof.progress();
      const blow = blows[round % blows.length]!;
      await proof.strike(blow, stoppedMs);
      report.rounds[blow]++;
    }
    await proof.progress();
    await proof.end(writing);
    for (const { object, name, acknowledged, unanswered } of proof.writers) {
      const all = await proof.ask<{ writer: string; n: number; times: number }[]>(`/${object}/all`);
      const own = new Map(all.filter(({ writer }) => writer === name).map(({ n, times }) => [n, times]));
      report.acknowledged += acknowledged.size;
      report.unanswered += unanswered;
      report.lost += [...acknowledged].filter((n) => !own.has(n)).length;
      report.doubled += [...own.values()].filter((times) => times > 1).length;
    }
    report.instances = proof.instances;
    return report;
  } finally {
    await proof.server.stop();
  }
}

if (import.meta.main) {
  const report = await prove(Number(process.argv[2] ?? 50));
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = report.lost + report.doubled + report.late.length === 0 ? 0 : 1;
}
