import { BoundSocket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Config } from "../../platform/config/settings.ts";
import type { HeldDns } from "../../platform/listen/held-dns.ts";
import { nameOf, type PassedSockets } from "../../platform/listen/passed.ts";
import type { Sockets } from "../../platform/listen/sockets.ts";
import { Turns } from "../../platform/util/turns.ts";
import { unawaited, vital } from "../../platform/util/uncaught.ts";
import { EdgeSlot } from "./edge-slot.ts";
import type { NodeFolder } from "./node-folder.ts";
import { pauseBeforeRestart, pauseOf } from "./restart-pause.ts";
import { SupervisedProcess, type GivenSocket } from "./supervised-process.ts";

/** A process that was ready and ran for this long is started again after the shortest pause. */
const settledMs = 5000;
/** A node without a ready edge process ends after this many failed starts within this time. */
const failures = { max: 5, withinMs: 60_000 };
const mainStallMsMax = 5000;
const watchMs = 500;
/** Time that a stopping process has for its requests in progress. */
const drainMsMax = 30_000;

const ofMain = ["apiListen", "metricsListen", "healthListen"] as const;
const ofEdges = ["edgeListen", "edgeTlsListen"] as const;

/**
 * Holds the sockets of a node's processes, so that connections wait while a process is started again. It starts main
 * and the edge processes, starts those again that end, and replaces all of them without losing a connection.
 */
export class Supervisor {
  readonly #config: Config;
  readonly #logger: Logger;
  readonly #folder: NodeFolder;
  readonly #sockets: { main: GivenSocket[]; edge: GivenSocket[] };
  #addresses: Partial<Config>;
  #main: SupervisedProcess | undefined;
  #hadMain = false;
  readonly #edges: EdgeSlot[] = [];
  readonly #leaving = new Set<SupervisedProcess>();
  #lastId = 0;
  #isStopping = false;
  #lastWatchMs = Infinity;
  #failedMs: number[] = [];
  readonly #earlyExits = { main: 0, edge: 0 };
  readonly #replacing = new Turns();
  readonly #ended = Promise.withResolvers<number>();

  /** `dns` are the sockets of the name server, if this process holds them and no service manager has passed others. */
  constructor(
    config: Config,
    sockets: Sockets,
    passed: PassedSockets,
    dns: HeldDns | undefined,
    folder: NodeFolder,
    logger: Logger,
  ) {
    this.#config = config;
    this.#logger = logger;
    this.#folder = folder;
    const given = (names: readonly ((typeof ofMain)[number] | (typeof ofEdges)[number])[]): GivenSocket[] =>
      names
        .filter((name) => config[name] !== undefined)
        .map((name) => ({ name: nameOf(name), fd: descriptorOf(sockets.take(name)) }));
    const ofDns = dns === undefined ? passedDns(passed) : [dns.tcp.fd(), dns.udpDescriptor];
    const forDns = ofDns.map((fd) => ({ name: nameOf("dnsListen"), fd }));
    this.#sockets = { main: [...given(ofMain), ...forDns], edge: given(ofEdges) };
    this.#addresses = Object.fromEntries(
      [...ofMain, ...ofEdges].flatMap((name) => {
        const at = config[name] === undefined ? undefined : sockets.take(name);
        return at instanceof BoundSocket ? [[name, textOf(at.address())]] : [];
      }),
    );
    if (dns !== undefined) this.#addresses = { ...this.#addresses, dnsListen: textOf(dns.tcp.address()) };
  }

  /** Starts all processes. Resolves with whether they are ready. */
  async start(): Promise<boolean> {
    this.#startMain();
    for (let n = 0; n < this.#config.edgeProcesses; n++) this.#edges.push(this.#newSlot());
    setInterval(() => this.#watch(), watchMs).unref();
    return this.#main!.ready;
  }

  /** Resolves with the exit code when no process is left. */
  async end(): Promise<number> {
    const code = await this.#ended.promise;
    await Promise.all([...this.#leaving].map(({ exited }) => exited));
    this.#folder.remove();
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
    const lameMs = this.#config.lameDuckSeconds * 1000;
    await Promise.all(this.#all().map(async (child) => child === main || child.stop(lameMs + drainMsMax)));
    const code = await main?.stop(drainMsMax);
    this.#ended.resolve(typeof code === "number" ? code : 1);
  }

  /** Replaces every process by a new one, edge processes first. Gives up at the first that does not start. */
  async replaceAll(): Promise<void> {
    await this.#replacing.take(async () => {
      for (const slot of this.#edges) if (this.#isStopping || !(await slot.replace())) return;
      const main = this.#main;
      if (main === undefined || this.#isStopping) return;
      this.#main = undefined;
      await this.#leave(main);
      if (this.#isStopping) return;
      this.#startMain();
      if (await this.#main!.ready) this.#logger.info("every process was replaced");
    });
  }

  #all(): SupervisedProcess[] {
    const edges = this.#edges.flatMap(({ processes }) => processes);
    return [...(this.#main === undefined ? [] : [this.#main]), ...edges, ...this.#leaving];
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

  #newSlot(): EdgeSlot {
    return new EdgeSlot({
      logger: this.#logger,
      start: () => this.#spawn("edge"),
      isStopping: () => this.#isStopping,
      mayStartAgain: async (ended) => this.#mayStartAgain(ended),
      leave: (replaced) => unawaited(this.#leave(replaced)),
    });
  }

  /** Stops a process that was replaced. */
  async #leave(replaced: SupervisedProcess): Promise<void> {
    this.#leaving.add(replaced);
    replaced.announceEnd();
    await replaced.stop(drainMsMax);
    this.#leaving.delete(replaced);
  }

  #spawn(role: "main" | "edge"): SupervisedProcess {
    const supervised = {
      role,
      id: ++this.#lastId,
      folder: this.#folder.path,
      supervisorPid: process.pid,
      serving: this.#edges.filter(({ current }) => current.isAlive && current.isReady).length,
      addresses: this.#addresses,
    };
    return new SupervisedProcess(supervised, this.#sockets[role], (message) => {
      if (message.is === "ready" && role === "main") {
        this.#hadMain = true;
        if (message.dns !== undefined) this.#addresses = { ...this.#addresses, dnsListen: message.dns };
      }
      if (message.is === "stalled") unawaited(this.#replaceStalled(message.id));
    });
  }

  /** Replaces an edge process that does not answer, however many attempts that takes. */
  async #replaceStalled(id: number): Promise<void> {
    const slot = this.#edges.find(({ current }) => current.supervised.id === id);
    const isThere = (): boolean => slot?.current.supervised.id === id && slot.current.isAlive;
    for (let attempt = 1; isThere() && !this.#isStopping; attempt++) {
      if (await this.#replacing.take(async () => !isThere() || slot!.replace())) return;
      await delay(pauseOf(attempt));
    }
  }

  /** Waits before a process is started again. Ends the node if processes keep failing. */
  async #mayStartAgain(child: SupervisedProcess): Promise<boolean> {
    const nowMs = performance.now();
    const { role } = child.supervised;
    if (!child.isReady) {
      this.#failedMs = [...this.#failedMs.filter((ms) => nowMs - ms < failures.withinMs), nowMs];
      const isServing = this.#edges.some(({ current }) => current.isAlive && current.isReady);
      if (!this.#hadMain || (this.#failedMs.length >= failures.max && !isServing)) {
        const code = await child.exited;
        this.#logger.fatal("processes do not start, so the node ends");
        this.#isStopping = true;
        await Promise.all(this.#all().map(async (each) => each.stop(drainMsMax)));
        this.#ended.resolve(typeof code === "number" ? code : 1);
        return false;
      }
    }
    this.#earlyExits[role] =
      child.isReady && nowMs - child.startedMs > settledMs ? 0 : this.#earlyExits[role] + 1;
    const isOtherThere = (): boolean => role === "edge" && this.#edges.some(({ current }) => current.isAlive);
    await pauseBeforeRestart(this.#earlyExits[role], { wasReady: child.isReady, isOtherThere });
    return !this.#isStopping;
  }

  /** Kills processes that are not ready in time, and a main process that does not respond. */
  #watch(): void {
    const nowMs = performance.now();
    // If this process itself was paused, perhaps with all others, the messages of the others are still unread.
    const wasAway = nowMs - this.#lastWatchMs > mainStallMsMax / 2;
    this.#lastWatchMs = nowMs;
    for (const child of this.#all()) {
      if (wasAway) child.lastSignOfLifeMs = nowMs;
      if (nowMs - child.lastSignOfLifeMs < this.#silenceMsMax(child)) continue;
      const { role, id } = child.supervised;
      const process = role === "main" ? role : `edge ${id}`;
      this.#logger.error({ process }, "a process does not respond and is ended");
      child.signal("SIGKILL");
    }
  }

  /** How long a process may send no message. A starting one reports that it waits for main, then that it is ready. */
  #silenceMsMax({ isReady, supervised: { role } }: SupervisedProcess): number {
    if (isReady) return role === "main" ? mainStallMsMax : Infinity; // main watches edge processes
    if (role === "main" && !this.#hadMain) return Infinity; // a migration may take long
    return (this.#config.processStartSeconds + this.#config.databaseWaitSeconds) * 1000;
  }
}

/** The passed sockets, TCP before UDP, because the child tells them apart by their order. */
const passedDns = (passed: PassedSockets): number[] =>
  (passed.get("dnsListen") ?? [])
    .toSorted((a, b) => a.protocol.localeCompare(b.protocol))
    .map(({ fd }) => fd);

const textOf = ({ address, port }: { address: string; port: number }): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

function descriptorOf(at: ReturnType<Sockets["take"]>): number {
  if (at instanceof BoundSocket) return at.fd();
  if ("fd" in at) return at.fd;
  throw new Error("Expected a bound socket");
}
