import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { requestEdge } from "../helpers/edge-request.ts";
import { ObjectNodes, type ObjectNode } from "../helpers/object-nodes.ts";
import { ledgerScript } from "./ledger-script.ts";

/*
 * Objects on several nodes, of which the owner is killed, or suspended for three leases, while objects are written and
 * read through all nodes. No acknowledged write may be lost or made twice, and once an object's new instance has answered,
 * its previous one must never answer again. By default 50 kills and 5 suspensions:
 * `node test/proofs/object-nodes.ts [--kills 50] [--suspensions 5] [--objects 1000] [--async 1s]`.
 * With --async, nothing waits for a shipment, and the report says what is lost.
 */
export interface NodesReport {
  kills: number;
  suspensions: number;
  acknowledged: number;
  /** Calls without an answer: writes may have been made. */
  unanswered: number;
  lost: number;
  doubled: number;
  /** Answers of an instance to calls that were sent after its successor had answered. */
  late: string[];
  /** Answers of an instance, after its successor had answered, to calls that were sent before. */
  crossed: number;
  instances: number;
  /** Ms from each kill or suspension to the first answer of a new instance. */
  takeOverMs: number[];
  /** Ms from the kill of the owner until so many objects of a namespace had answered, each once. */
  allOfShardMs: number | undefined;
  /** Age of the oldest lost write at the kill that lost it, in ms. */
  lostAgeMs: number;
}

export interface NodesProofOptions {
  kills: number;
  suspensions: number;
  /** Further objects in the namespace, for the time of a take-over of them all. */
  objects: number;
  leaseMs: number;
  /** The interval of shipments that nothing waits for. */
  async?: string | undefined;
}

const ledgers = 4;
const writersOfLedger = 2;

interface Writer {
  object: string;
  name: string;
  /** When each acknowledged write was. */
  acknowledged: Map<number, number>;
  unanswered: number;
  /** Of the call in progress, and the error of the last one that failed. */
  sentMs: number;
  failure: string;
}

const idle = { unanswered: 0, sentMs: 0, failure: "none" };

class NodesProof {
  readonly nodes: ObjectNodes;
  readonly writers: Writer[] = [];
  readonly late: string[] = [];
  crossed = 0;
  instances = 0;
  namespace = "";
  #host = "";
  /** The newest instance that has answered, by object. */
  readonly #newest = new Map<string, number>();
  /** When the last new instance answered first; if instances may be lost, when the last call that was answered was sent. */
  newestMs = 0;
  readonly #mayLose: boolean;
  #isOver = false;
  #suspended: ObjectNode | undefined;

  constructor(nodes: ObjectNodes, mayLose: boolean) {
    this.nodes = nodes;
    this.#mayLose = mayLose;
  }

  async start(names: readonly string[]): Promise<void> {
    for (const name of names) await this.nodes.start(name);
    await this.nodes.divided();
    const [node] = this.nodes.all as [ObjectNode];
    await node.deploy("ledgers", ledgerScript);
    this.#host = node.hostOf("ledgers");
    const { result } = await node.api("GET", "/workers/durable_objects/namespaces");
    this.namespace = (result as { id: string }[])[0]!.id;
  }

  /** `isPatient`: also at a node that is suspended, which answers when it goes on. */
  async ask<T>(path: string, isPatient = false): Promise<T> {
    const usable = this.nodes.all.filter((node) => isPatient || node !== this.#suspended);
    const node = usable[Math.floor(Math.random() * usable.length)]!;
    const { status, body } = await requestEdge(node.server.ready.edge, this.#host, path);
    if (status !== 200) throw new Error(`${status} ${body}`);
    return JSON.parse(body) as T;
  }

  /** Asks until there is an answer. */
  async askLong<T>(path: string): Promise<T> {
    const deadline = performance.now() + 60_000;
    for (;;)
      try {
        return await this.ask<T>(path);
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await delay(20);
      }
  }

  write(): Promise<void>[] {
    for (let object = 0; object < ledgers; object++)
      for (let i = 0; i < writersOfLedger; i++)
        this.writers.push({ object: `l${object}`, name: `w${i}`, acknowledged: new Map(), ...idle });
    return this.writers.map(async (writer) => this.#writeOn(writer));
  }

  async #writeOn(writer: Writer): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      const before = this.#newest.get(writer.object) ?? 0;
      const sentMs = (writer.sentMs = performance.now());
      const isRead = n % 4 === 3;
      const path = isRead ? `/${writer.object}/look` : `/${writer.object}/write/${writer.name}/${n}`;
      try {
        const { instance } = await this.ask<{ instance: number }>(path, writer.name === "w0");
        if (!isRead) writer.acknowledged.set(n, performance.now());
        if (this.#mayLose) this.newestMs = Math.max(this.newestMs, sentMs);
        else this.#note(writer, n, instance, before);
      } catch (error) {
        writer.failure = (error as Error).message;
        writer.unanswered++;
        await delay(20);
      }
    }
  }

  /** `before` is the newest instance that had answered when the call was sent. */
  #note({ object, name }: Writer, n: number, instance: number, before: number): void {
    const newest = this.#newest.get(object) ?? 0;
    if (instance < before) this.late.push(`${object} ${name} ${n}: instance ${instance} after ${before}`);
    else if (instance < newest) this.crossed++;
    if (instance <= newest) return;
    this.#newest.set(object, instance);
    this.newestMs = performance.now();
    this.instances++;
  }

  /** Resolves when each writer has had answers since. */
  async progress(): Promise<void> {
    const counts = this.writers.map(({ acknowledged }) => acknowledged.size);
    const deadline = performance.now() + 60_000;
    while (this.writers.some(({ acknowledged }, i) => acknowledged.size < counts[i]! + 3)) {
      if (performance.now() > deadline) throw new Error(`No answers for a minute: ${this.#stuck(counts)}`);
      await delay(10);
    }
  }

  #stuck(counts: readonly number[]): string {
    const stuck = this.writers.filter(({ acknowledged }, i) => acknowledged.size < counts[i]! + 3);
    return stuck
      .map(({ object, name, sentMs, failure }) => {
        const sinceMs = performance.now() - sentMs;
        return `${object} ${name} waits since ${sinceMs.toFixed(0)} ms, last failure: ${failure}`;
      })
      .join("; ");
  }

  /** Resolves with the time of the first answer of a new instance after a moment. */
  async takenOver(sinceMs: number): Promise<number> {
    const deadline = performance.now() + 60_000;
    while (this.newestMs <= sinceMs) {
      if (performance.now() > deadline) throw new Error("no other node took over within a minute");
      await delay(2);
    }
    return (this.#mayLose ? performance.now() : this.newestMs) - sinceMs;
  }

  /** Kills the owner. Returns how long it took until another node answered; the owner has started again then. */
  async kill(): Promise<number> {
    const [owner] = await this.nodes.ownerAndOther(this.namespace);
    const since = performance.now();
    await this.nodes.end(owner, "SIGKILL");
    const took = await this.takenOver(since);
    await this.nodes.start(owner.name);
    return took;
  }

  async suspend(): Promise<number> {
    const [owner] = await this.nodes.ownerAndOther(this.namespace);
    this.#suspended = owner;
    process.kill(owner.server.ready.pid, "SIGSTOP");
    const since = performance.now();
    await delay(3 * this.nodes.leaseMs);
    const took = await this.takenOver(since);
    process.kill(owner.server.ready.pid, "SIGCONT");
    this.#suspended = undefined;
    return took;
  }

  async end(writing: readonly Promise<void>[]): Promise<void> {
    this.#isOver = true;
    await Promise.all(writing);
  }

  /** Calls objects once each, eight at a time. */
  async callAll(count: number): Promise<void> {
    const left = Array.from({ length: count }, (_, i) => i).values();
    const call = async (): Promise<void> => {
      for (const i of left) await this.askLong(`/many${i}/look`);
    };
    await Promise.all(Array.from({ length: 8 }, call));
  }

  /** The acknowledged writes that are missing, with the times of their acknowledgements, and those made twice. */
  async compare(): Promise<{ lostMs: number[]; doubled: number }> {
    const lostMs: number[] = [];
    let doubled = 0;
    for (const { object, name, acknowledged } of this.writers) {
      const all = await this.askLong<{ writer: string; n: number; times: number }[]>(`/${object}/all`);
      const own = new Map(all.filter(({ writer }) => writer === name).map(({ n, times }) => [n, times]));
      for (const [n, ms] of acknowledged) if (!own.has(n)) lostMs.push(ms);
      doubled += [...own.values()].filter((times) => times > 1).length;
    }
    return { lostMs, doubled };
  }
}

/** Runs the proof on nodes of its own. */
export async function prove(
  options: NodesProofOptions,
  report: (line: string) => void = () => {},
): Promise<NodesReport> {
  const log = options.async === undefined ? ["--object-log-first"] : ["--object-log", options.async];
  const proof = new NodesProof(
    await ObjectNodes.begin({ leaseMs: options.leaseMs, settings: log }),
    options.async !== undefined,
  );
  const strikesMs: number[] = [];
  const takeOverMs: number[] = [];
  try {
    await proof.start(["a", "b"]);
    const writing = proof.write();
    for (let round = 0; round < options.kills + options.suspensions; round++) {
      await proof.progress();
      strikesMs.push(performance.now());
      const took = await (round < options.kills ? proof.kill() : proof.suspend());
      takeOverMs.push(Math.round(took));
      report(`round ${round + 1}: another node answered after ${took.toFixed(0)} ms`);
    }
    await proof.progress();
    await proof.end(writing);
    let allOfShardMs: number | undefined;
    if (options.objects > 0) {
      await proof.callAll(options.objects);
      const [owner] = await proof.nodes.ownerAndOther(proof.namespace);
      await proof.nodes.end(owner, "SIGKILL");
      const since = performance.now();
      await proof.askLong("/many0/look");
      takeOverMs.push(Math.round(performance.now() - since));
      report(`${options.objects} objects: the first answered after ${takeOverMs.at(-1)} ms`);
      await proof.callAll(options.objects);
      allOfShardMs = Math.round(performance.now() - since);
    }
    const { lostMs, doubled } = await proof.compare();
    const ages = lostMs.map((ms) => (strikesMs.find((strike) => strike >= ms) ?? ms) - ms);
    const sum = (of: (writer: Writer) => number): number =>
      proof.writers.reduce((total, writer) => total + of(writer), 0);
    return {
      kills: options.kills,
      suspensions: options.suspensions,
      acknowledged: sum(({ acknowledged }) => acknowledged.size),
      unanswered: sum(({ unanswered }) => unanswered),
      lost: lostMs.length,
      doubled,
      late: proof.late,
      crossed: proof.crossed,
      instances: proof.instances,
      takeOverMs,
      allOfShardMs,
      lostAgeMs: Math.round(Math.max(0, ...ages)),
    };
  } finally {
    await proof.nodes.close();
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kills: { type: "string", default: "50" },
      suspensions: { type: "string", default: "5" },
      objects: { type: "string", default: "1000" },
      lease: { type: "string", default: "2" },
      async: { type: "string" },
    },
  });
  const report = await prove(
    {
      kills: Number(values.kills),
      suspensions: Number(values.suspensions),
      objects: Number(values.objects),
      leaseMs: Number(values.lease) * 1000,
      async: values.async,
    },
    (line) => process.stdout.write(`${(performance.now() / 1000).toFixed(0)} s: ${line}\n`),
  );
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  const lost = values.async === undefined ? report.lost : 0;
  process.exitCode = lost + report.doubled + report.late.length === 0 ? 0 : 1;
}
