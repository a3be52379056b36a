import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { processTree } from "../../bench/lib/tree.ts";
import { Random } from "../name-server/random.ts";
import { askSteadily } from "../proofs/load-clients.ts";
import type { Cores } from "./cores.ts";
import { portsHeld } from "./held.ts";

export interface ChaosOptions {
  seconds: number;
  perSecond: number;
  seed: number;
  /** The longest time between two disturbances. */
  everyMsMax: number;
}

export interface ChaosReport {
  asked: number;
  disturbances: Record<string, number>;
  /** Changes that the API has acknowledged, and calls that were cut with main. */
  changes: { acknowledged: number; cut: number };
  /** Requests that failed with the process that held them, or for lack of a main process for longer than they may wait. */
  excused: { held: number; withoutMain: number };
  /** Innocent requests that failed otherwise. */
  failures: string[];
  /** Answers that a change before them had made wrong. */
  stale: string[];
  p50Ms: number;
  worstMs: number;
}

interface Asked {
  status: number;
  body: string;
  port: number;
  startMs: number;
  endMs: number;
}

interface Death {
  ms: number;
  /** The connections of visitors that ended with it. */
  ports: ReadonlySet<number>;
}

const names = 20;
const isServed = 200;
const isUnknown = 404;
const requestMsMax = 60_000;
/** An edge process keeps the requests of scripts for so long while there is no main. */
const absentMsMax = 5000;
const stallMs = 3000;

/** Disturbs the processes of a node at random, under load and changes, and judges every answer. */
export class Chaos {
  readonly #cores: Cores;
  readonly #options: ChaosOptions;
  readonly #random: Random;
  readonly #port: number;
  readonly #deaths: Death[] = [];
  /** When a process that runs scripts was killed, and when main answered again. */
  readonly #absences: { fromMs: number; toMs: number }[] = [];
  /** The names of the zone that the API has acknowledged, and those that it is changing. */
  readonly #isThere = new Map<string, boolean>();
  readonly #changing = new Set<string>();
  /** Names whose last change was cut with main: its answer, which edge processes have it, never came. */
  readonly #unacknowledged = new Set<string>();
  /** How often each name has begun to change. */
  readonly #versions = new Map<string, number>();
  readonly #serving = new Set<number>();
  readonly #took: number[] = [];
  readonly #report: ChaosReport = {
    asked: 0,
    disturbances: {},
    changes: { acknowledged: 0, cut: 0 },
    excused: { held: 0, withoutMain: 0 },
    failures: [],
    stale: [],
    p50Ms: 0,
    worstMs: 0,
  };

  constructor(cores: Cores, options: ChaosOptions) {
    this.#cores = cores;
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#port = Number(new URL(cores.server.ready.edge).port);
  }

  async run(): Promise<ChaosReport> {
    await this.#cores.calls.deploy("innocent", `export default { fetch: () => new Response("innocent") }`);
    await this.#cores.calls.ask("innocent");
    for (let n = 0; n < names; n++) this.#isThere.set(`n${n}`, false);
    const ending = new AbortController();
    const { signal } = ending;
    const timer = setTimeout(() => ending.abort(), this.#options.seconds * 1000);
    const watching = this.#whileNot(signal, 100, async () => this.#noteServing());
    await Promise.all([
      askSteadily(this.#options.perSecond, signal, async (n) => this.#visit(n)),
      this.#whileNot(signal, 50, async () => this.#change()),
      this.#whileNot(signal, 0, async () => this.#disturb()),
      watching,
    ]);
    clearTimeout(timer);
    const sorted = this.#took.toSorted((a, b) => a - b);
    return {
      ...this.#report,
      p50Ms: Math.round(sorted[sorted.length >> 1] ?? 0),
      worstMs: Math.round(sorted.at(-1) ?? 0),
    };
  }

  async #whileNot(signal: AbortSignal, pauseMs: number, work: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await work();
      await delay(pauseMs);
    }
  }

  async #visit(n: number): Promise<void> {
    if (n % 3 === 0) await this.#visitScript();
    else await this.#visitName(`n${n % names}`);
  }

  async #visitScript(): Promise<void> {
    const asked = await this.#ask(this.#cores.calls.hostOf("innocent"));
    if (asked.status === 200 && asked.body === "innocent") return;
    if (this.#wasHeld(asked)) this.#report.excused.held += 1;
    else if (this.#lackedMain(asked)) this.#report.excused.withoutMain += 1;
    else this.#report.failures.push(`script: ${asked.status} ${asked.body.slice(0, 200)}`);
  }

  /** Judges the answer only if the name did not change meanwhile. */
  async #visitName(name: string): Promise<void> {
    const version = this.#versions.get(name);
    const isThere = this.#isThere.get(name)!;
    const wasChanging = this.#changing.has(name) || this.#unacknowledged.has(name);
    const asked = await this.#ask(`${name}.cores.example`);
    const isKnown = [isServed, isUnknown].includes(asked.status);
    if (!isKnown) {
      if (this.#wasHeld(asked)) this.#report.excused.held += 1;
      else this.#report.failures.push(`${name}: ${asked.status} ${asked.body.slice(0, 200)}`);
      return;
    }
    if (wasChanging || this.#versions.get(name) !== version) return;
    if ((asked.status === isServed) !== isThere)
      this.#report.stale.push(`${name}: ${asked.status} after ${Math.round(asked.endMs - asked.startMs)} ms`);
  }

  /** Adds or removes a name. */
  async #change(): Promise<void> {
    const free = [...this.#isThere.keys()].filter((name) => !this.#changing.has(name));
    if (free.length === 0) return;
    const name = this.#random.pick(free);
    const isThere = this.#isThere.get(name)!;
    this.#changing.add(name);
    this.#versions.set(name, (this.#versions.get(name) ?? 0) + 1);
    try {
      if (isThere) await this.#cores.removeName(name);
      else await this.#cores.addName(name);
    } catch (error) {
      if (!(error as NodeJS.ErrnoException).code?.startsWith("E")) throw error;
      this.#report.changes.cut += 1;
      this.#unacknowledged.add(name);
      await this.#settle(name);
      return;
    }
    this.#report.changes.acknowledged += 1;
    this.#isThere.set(name, !isThere);
    this.#changing.delete(name);
    this.#unacknowledged.delete(name);
    await Promise.all(Array.from({ length: 5 }, async () => this.#visitName(name)));
  }

  /** Finds out whether a change was made whose answer was lost. */
  async #settle(name: string): Promise<void> {
    for (;;) {
      try {
        const path = `/zones/${this.#cores.zoneId}/dns_records?name=${name}.cores.example`;
        const { result } = await this.#cores.call("GET", path);
        this.#isThere.set(name, (result as object[]).length > 0);
        this.#changing.delete(name);
        return;
      } catch {
        await delay(100);
      }
    }
  }

  async #disturb(): Promise<void> {
    await delay(this.#random.below(this.#options.everyMsMax));
    const kind = this.#random.pick(["edge", "edge", "edge", "cell", "cell", "main", "stall"] as const);
    const isDone = await this.#do(kind);
    if (isDone) this.#report.disturbances[kind] = (this.#report.disturbances[kind] ?? 0) + 1;
  }

  async #do(kind: "edge" | "cell" | "main" | "stall"): Promise<boolean> {
    const edges = this.#cores.pids("edge").filter((pid) => this.#serving.has(pid));
    if (kind === "edge") return edges.length > 0 && this.#kill(this.#random.pick(edges));
    if (kind === "cell") {
      const cells = processTree(this.#cores.server.ready.pid).filter(isCell);
      if (cells.length === 0) return false;
      return this.#withoutScripts(
        async () => this.#kill(this.#random.pick(cells)),
        async () => {},
      );
    }
    if (kind === "main") {
      const [main] = this.#cores.pids("main");
      const isReady = this.#absences.every(({ toMs }) => toMs < performance.now());
      if (main === undefined || !isReady) return false;
      return this.#withoutScripts(
        async () => this.#kill(main),
        async () => this.#mainAnswers(),
      );
    }
    const stalled = edges.length > 1 ? this.#random.pick(edges) : undefined;
    if (stalled === undefined) return false;
    return this.#stall(stalled);
  }

  /** Scripts may fail from the death of a process that runs them until there is another one. */
  async #withoutScripts(kill: () => Promise<boolean>, again: () => Promise<void>): Promise<boolean> {
    const absence = { fromMs: performance.now(), toMs: Infinity };
    this.#absences.push(absence);
    const isDone = await kill();
    await again();
    absence.toMs = performance.now();
    return isDone;
  }

  async #mainAnswers(): Promise<void> {
    for (;;) {
      const answer = await this.#ask(this.#cores.calls.hostOf("innocent"));
      if (answer.status === 200) return;
      await delay(50);
    }
  }

  /** Ends a process at once, and notes the connections that it held. */
  async #kill(pid: number): Promise<boolean> {
    try {
      process.kill(pid, "SIGSTOP");
      const ports = portsHeld(pid, this.#port);
      process.kill(pid, "SIGKILL");
      this.#deaths.push({ ms: performance.now(), ports });
      return true;
    } catch {
      return false; // it has ended meanwhile
    }
  }

  /** Stops an edge process for longer than it may be silent: main takes it out, and it is replaced. */
  async #stall(pid: number): Promise<boolean> {
    try {
      process.kill(pid, "SIGSTOP");
      await delay(stallMs);
      process.kill(pid, "SIGCONT");
      return true;
    } catch {
      return false;
    }
  }

  /** Edge processes that have served: one that only starts is left alone. */
  async #noteServing(): Promise<void> {
    for (const pid of this.#cores.pids("edge"))
      if (!this.#serving.has(pid) && portsHeld(pid, this.#port).size > 0) this.#serving.add(pid);
  }

  #wasHeld({ port, startMs, endMs, status }: Asked): boolean {
    const isCut = status === 0;
    return isCut && this.#deaths.some(({ ms, ports }) => ports.has(port) && ms >= startMs && ms <= endMs);
  }

  #lackedMain({ startMs, endMs }: Asked): boolean {
    const from = startMs - absentMsMax;
    return this.#absences.some(({ fromMs, toMs }) => fromMs <= endMs && toMs >= from);
  }

  /** A request on a connection of its own. A failure has the status 0. */
  async #ask(host: string): Promise<Asked> {
    const startMs = performance.now();
    let port = 0;
    const { status, body } = await new Promise<{ status: number; body: string }>((resolve) => {
      const failed = (error: NodeJS.ErrnoException): void =>
        resolve({ status: 0, body: error.code ?? error.message });
      const sent = request(
        this.#cores.server.ready.edge,
        { agent: false, headers: { host }, timeout: requestMsMax },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response.on("error", failed).on("end", () => resolve({ status: response.statusCode!, body: text }));
        },
      );
      sent.on("socket", (socket: Socket) => socket.on("connect", () => (port = socket.localPort!)));
      sent.on("timeout", () => sent.destroy(new Error("no answer in a minute")));
      sent.on("error", failed).end();
    });
    const endMs = performance.now();
    this.#report.asked += 1;
    this.#took.push(endMs - startMs);
    return { status, body, port, startMs, endMs };
  }
}

function isCell(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "workerd";
  } catch {
    return false;
  }
}
