import { mkdtempSync, rmSync } from "node:fs";
import { BoundSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Config } from "../../platform/config/settings.ts";
import { nameOf, type PassedSockets } from "../../platform/listen/passed.ts";
import type { Sockets } from "../../platform/listen/sockets.ts";
import { Turns } from "../../platform/util/turns.ts";
import { unawaited, vital } from "../../platform/util/uncaught.ts";
import { SupervisedProcess, type GivenSocket } from "./supervised-process.ts";

const restartMs = { first: 100, max: 30_000 };
/** A process that served for so long is started again at once. */
const settledMs = 5000;
/** So many processes that ended before they were ready, within this time, end the node. */
const failures = { max: 5, withinMs: 60_000 };
const mainStallMsMax = 5000;
const watchMs = 500;

const ofMain = ["apiListen", "metricsListen", "healthListen"] as const;
const ofEdges = ["edgeListen", "edgeTlsListen"] as const;

/**
 * Holds the sockets of a node's processes, so that connections wait while a process is started again. It starts main
 * and the edge processes, starts those again that end, and replaces all of them without losing a connection.
 */
export class Supervisor {
  readonly #config: Config;
  readonly #logger: Logger;
  readonly #folder: string;
  readonly #sockets: { main: GivenSocket[]; edge: GivenSocket[] };
  #addresses: Partial<Config>;
  #main: SupervisedProcess | undefined;
  readonly #edges = new Map<number, SupervisedProcess>();
  readonly #leaving = new Set<SupervisedProcess>();
  #lastId = 0;
  #isStopping = false;
  #lastWatchMs = Infinity;
  #failedMs: number[] = [];
  readonly #quickDeaths = { main: 0, edge: 0 };
  readonly #replacing = new Turns();
  readonly #ended = Promise.withResolvers<number>();

  constructor(config: Config, sockets: Sockets, passed: PassedSockets, logger: Logger) {
    this.#config = config;
    this.#logger = logger;
    this.#folder = mkdtempSync(join(tmpdir(), "selvedge-"));
    const given = (names: readonly ((typeof ofMain)[number] | (typeof ofEdges)[number])[]): GivenSocket[] =>
      names
        .filter((name) => config[name] !== undefined)
        .map((name) => ({ name: nameOf(name), fd: descriptorOf(sockets.take(name)) }));
    const dns = (passed.get("dnsListen") ?? []).map(({ fd }) => ({ name: "dns", fd }));
    this.#sockets = { main: [...given(ofMain), ...dns], edge: given(ofEdges) };
    this.#addresses = Object.fromEntries(
      [...ofMain, ...ofEdges].flatMap((name) => {
        const at = config[name] === undefined ? undefined : sockets.take(name);
        return at instanceof BoundSocket ? [[name, textOf(at.address())]] : [];
      }),
    );
  }

  /** Starts all processes. Resolves with whether they are ready. */
  async start(): Promise<boolean> {
    this.#startMain();
    for (let n = 0; n < this.#config.edgeProcesses; n++) this.#startEdge();
    setInterval(() => this.#watchMain(), watchMs).unref();
    return this.#main!.ready;
  }

  /** Resolves with the exit code when no process is left. */
  async end(): Promise<number> {
    const code = await this.#ended.promise;
    await Promise.all([...this.#leaving].map(({ exited }) => exited));
    rmSync(this.#folder, { recursive: true, force: true });
    return code;
  }

  /** Passes a signal on to every process. */
  signal(signal: NodeJS.Signals): void {
    for (const child of this.#all()) child.signal(signal);
  }

  /** Ends edge processes first: main answers their requests. A second call ends all at once. */
  async stop(): Promise<void> {
    if (this.#isStopping) {
      this.signal("SIGKILL");
      return;
    }
    this.#isStopping = true;
    // A replacement may have asked main to end already.
    const main = this.#main ?? [...this.#leaving].find(({ supervised }) => supervised.role === "main");
    main?.announceEnd();
    await Promise.all([...this.#edges.values(), ...this.#leaving].map((child) => child.stop()));
    const code = await main?.stop();
    this.#ended.resolve(typeof code === "number" ? code : 1);
  }

  /** Replaces every process by a new one, edge processes first. Gives up at the first that does not start. */
  async replaceAll(): Promise<void> {
    await this.#replacing.take(async () => {
      for (const id of [...this.#edges.keys()]) if (!(await this.#replaceEdge(id))) return;
      const main = this.#main;
      if (main === undefined || this.#isStopping) return;
      this.#main = undefined;
      this.#leaving.add(main);
      await main.stop();
      this.#leaving.delete(main);
      if (this.#isStopping) return;
      this.#startMain();
      if (await this.#main!.ready) this.#logger.info("every process was replaced");
    });
  }

  #all(): SupervisedProcess[] {
    return [...(this.#main === undefined ? [] : [this.#main]), ...this.#edges.values(), ...this.#leaving];
  }

  #startMain(): void {
    const child = this.#spawn("main");
    this.#main = child;
    vital("the supervision of main", this.#startMainAgain(child));
  }

  async #startMainAgain(child: SupervisedProcess): Promise<void> {
    const code = await child.exited;
    if (this.#main !== child || this.#isStopping) return;
    this.#main = undefined;
    this.#logger.error({ process: "main", code }, "a process has ended and is started again");
    if (await this.#mayStartAgain(child)) this.#startMain();
  }

  #startEdge(): SupervisedProcess {
    const child = this.#spawn("edge");
    this.#edges.set(child.supervised.id, child);
    unawaited(this.#startEdgeAgain(child));
    return child;
  }

  async #startEdgeAgain(child: SupervisedProcess): Promise<void> {
    const code = await child.exited;
    const { id } = child.supervised;
    if (this.#edges.get(id) !== child || this.#isStopping) return;
    this.#edges.delete(id);
    this.#logger.error({ process: `edge ${id}`, code }, "a process has ended and is started again");
    if (await this.#mayStartAgain(child)) this.#startEdge();
  }

  #spawn(role: "main" | "edge"): SupervisedProcess {
    const supervised = {
      role,
      id: ++this.#lastId,
      folder: this.#folder,
      supervisorPid: process.pid,
      serving: [...this.#edges.values()].filter(({ isReady }) => isReady).length,
      addresses: this.#addresses,
    };
    return new SupervisedProcess(supervised, this.#sockets[role], (message) => {
      if (message.is === "ready" && message.dns !== undefined)
        this.#addresses = { ...this.#addresses, dnsListen: message.dns };
      if (message.is === "stalled" && this.#edges.has(message.id))
        unawaited(this.#replacing.take(async () => this.#replaceEdge(message.id)));
    });
  }

  /** Starts another edge process and, once that serves, ends this one. Resolves with whether it did. */
  async #replaceEdge(id: number): Promise<boolean> {
    const old = this.#edges.get(id);
    if (old === undefined || this.#isStopping) return true;
    const next = this.#startEdge();
    if (!(await next.ready)) {
      this.#logger.error("a new edge process did not start; the old ones go on");
      return false;
    }
    if (this.#edges.get(id) === old) {
      this.#edges.delete(id);
      this.#leaving.add(old);
      unawaited(old.stop().finally(() => this.#leaving.delete(old)));
    }
    return true;
  }

  /** Waits before a process is started again. Ends the node if processes keep failing. */
  async #mayStartAgain(child: SupervisedProcess): Promise<boolean> {
    const nowMs = performance.now();
    const { role } = child.supervised;
    if (!child.isReady) {
      this.#failedMs = [...this.#failedMs.filter((ms) => nowMs - ms < failures.withinMs), nowMs];
      const isFirst = role === "main" && child.supervised.serving === 0;
      if (isFirst || this.#failedMs.length >= failures.max) {
        const code = await child.exited;
        this.#logger.fatal("processes do not start, so the node ends");
        this.#isStopping = true;
        await Promise.all(this.#all().map((each) => each.stop()));
        this.#ended.resolve(typeof code === "number" ? code : 1);
        return false;
      }
    }
    this.#quickDeaths[role] =
      child.isReady && nowMs - child.startedMs > settledMs ? 0 : this.#quickDeaths[role] + 1;
    await delay(Math.min(restartMs.max, restartMs.first * 2 ** Math.min(20, this.#quickDeaths[role])));
    return !this.#isStopping;
  }

  /** Edge processes wait for word from a main process that does not respond, so it must end. */
  #watchMain(): void {
    const main = this.#main;
    const nowMs = performance.now();
    // This process was away itself, perhaps with all others: what main has said waits to be read.
    const wasAway = nowMs - this.#lastWatchMs > mainStallMsMax / 2;
    this.#lastWatchMs = nowMs;
    if (main === undefined) return;
    if (wasAway) main.lastSignOfLifeMs = Math.max(main.lastSignOfLifeMs, nowMs);
    if (nowMs - main.lastSignOfLifeMs < mainStallMsMax) return;
    this.#logger.error({ process: "main" }, "a process does not respond and is ended");
    main.signal("SIGKILL");
  }
}

const textOf = ({ address, port }: { address: string; port: number }): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

function descriptorOf(at: ReturnType<Sockets["take"]>): number {
  if (at instanceof BoundSocket) return at.fd();
  if ("fd" in at) return at.fd;
  throw new Error("Expected a bound socket");
}
