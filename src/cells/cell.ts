import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { Client, Pool, type buildConnector } from "undici";
import { CellFolder, internal } from "./cell-folder.ts";
import { cellsFolder } from "./cells-folder.ts";
import { Channel, ChannelError, channelRequestOf } from "./channel.ts";
import { CellFault, type FaultKind } from "./errors.ts";
import {
  encodeSaid,
  exchange,
  headerBytesMax,
  type CellRequest,
  type Sink,
  type Thrown,
} from "./exchange.ts";
import { FrontServer, type RunHooks } from "./front-server.ts";
import { launch } from "./launch.ts";
import { CellProcess } from "./process.ts";
import type { CellScript } from "./script.ts";
import type { CellSettings } from "./settings.ts";
import { Traffic } from "./traffic.ts";
import { tunnel, type Visitor } from "./tunnel.ts";

export interface RunOptions {
  script: CellScript;
  /** Sent again where that is safe; one with a body is sent once. */
  request: CellRequest;
  /** Where the answer goes. A visitor's socket is for an upgrade. */
  answer: Sink | Visitor;
  /** Made anew for each attempt. */
  hooks: () => RunHooks;
}

/** A request that is in a cell. */
export interface Visit {
  script: CellScript;
  /** `performance.now()` when it was sent in. */
  sentAt: number;
  /** CPU time of the cell that is laid to its charge, in shares with those that were there too. */
  cpuShareMs: number;
  fault: CellFault | undefined;
}

const exitGraceMs = 1000;
const recentMax = 32;
/** Of the scripts and of their channels, when memory is short. */
const shareKept = 15 / 16;

/** A workerd process with its sockets, and the requests that are in it. */
export class Cell {
  readonly id: number;
  readonly visits = new Set<Visit>();
  /** The last that were answered: what they left running may do harm too. */
  readonly recent: Visit[] = [];
  /** Requests that have been answered. */
  answers = 0;
  /** Scripts that this cell has been sent. */
  readonly scripts = new Set<string>();
  lastActivityAt = performance.now();
  readonly process: CellProcess;
  /** Between the front and this cell. */
  readonly traffic: Traffic;
  readonly #folder: CellFolder;
  readonly #front: FrontServer;
  readonly #secret: string;
  readonly #scriptsMax: number;
  readonly #pool: Pool;
  readonly #control: Client;
  /** By script. */
  readonly #channels = new Map<string, Promise<Channel | Thrown>>();
  readonly #openChannels = new Map<string, Channel>();
  #isDead = false;

  private constructor(
    id: number,
    process: CellProcess,
    front: FrontServer,
    folder: CellFolder,
    secret: string,
    traffic: Traffic,
    scriptsMax: number,
  ) {
    this.id = id;
    this.#scriptsMax = scriptsMax;
    this.process = process;
    this.traffic = traffic;
    this.#front = front;
    this.#folder = folder;
    this.#secret = secret;
    // The front's own deadlines hold; a script may take its time.
    const options = {
      connect: (_: unknown, done: buildConnector.Callback) => connectTo(folder.cellSocket, traffic, done),
      headersTimeout: 0,
      bodyTimeout: 0,
      pipelining: 1,
    };
    this.#pool = new Pool("http://cell", { ...options, connections: 512, maxHeaderSize: headerBytesMax });
    this.#control = new Client("http://cell", options);
  }

  /** Starts a process; resolves when it answers. */
  static async boot(id: number, settings: CellSettings, onMessage: (line: string) => void): Promise<Cell> {
    const folder = new CellFolder(await cellsFolder());
    const secret = randomUUID();
    let cell: Cell | undefined;
    const traffic = new Traffic();
    const front = new FrontServer(secret, traffic, () => cell?.touch());
    try {
      folder.write(secret, v8Flags(settings), settings.scriptsMax);
      await front.listen(folder.frontSocket);
      folder.hand(folder.frontSocket);
      const process = new CellProcess(launch(folder.path), onMessage);
      cell = new Cell(id, process, front, folder, secret, traffic, settings.scriptsMax);
      await within(settings.bootTimeoutMs, process.listening);
      await within(settings.bootTimeoutMs, cell.ping());
      return cell;
    } catch (error) {
      cell?.process.kill("SIGKILL");
      const exit = cell === undefined ? undefined : await cell.process.exited;
      front.close();
      folder.remove();
      throw new Error(`a cell did not start: ${exit?.lastWords ?? ""}`, { cause: error });
    }
  }

  /** How many scripts have been loaded, those included that were loaded before. */
  get loads(): number {
    return this.#front.loads;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  touch(): void {
    this.lastActivityAt = performance.now();
  }

  /** Resolves when the cell's thread is free to answer. */
  async ping(): Promise<void> {
    const { body } = await this.#control.request({ method: "GET", path: "/" });
    await body.dump();
  }

  /** Unloads a few of the scripts, those unused for longest; those in use stay. */
  async unloadSome(): Promise<void> {
    await this.#closeChannels(Math.floor(this.#openChannels.size * shareKept));
    await this.#unload(`share=${shareKept}`);
  }

  /** As much as it takes to have no more than so many. */
  async #keep(count: number): Promise<void> {
    await this.#closeChannels(count);
    await this.#unload(`keep=${count}`);
  }

  async #unload(query: string): Promise<void> {
    const { body } = await this.#control.request({ method: "GET", path: `/?${query}` });
    const loaded = new Set((await body.json()) as string[]);
    const inUse = new Set([...this.visits].map(({ script }) => script.id));
    for (const id of this.scripts) if (!loaded.has(id) && !inUse.has(id)) this.scripts.delete(id);
  }

  /** A channel keeps its script loaded. Closes those unused for longest, where nothing goes over them. */
  async #closeChannels(countMax: number): Promise<void> {
    const idle = [...this.#openChannels].filter(([, channel]) => channel.isIdle);
    idle.sort(([, a], [, b]) => a.lastUsedAt - b.lastUsedAt);
    for (const [id, channel] of idle.slice(0, Math.max(0, this.#openChannels.size - countMax))) {
      if (!channel.isIdle) continue;
      this.#forgetChannel(id, channel);
      channel.close();
      const headers = [internal.said, encodeSaid({ selvedgeRun: "unpin", script: id })];
      const { body } = await this.#control.request({ method: "GET", path: "/", headers });
      await body.dump();
    }
  }

  /** Loads a script without running it, so that what it takes to load is not laid to a request's charge. */
  async load(script: CellScript): Promise<void> {
    this.#offer(script);
    const headers = [internal.said, encodeSaid({ selvedgeRun: "", script: script.id })];
    try {
      const { body } = await this.#control.request({ method: "GET", path: "/", headers });
      await body.dump();
    } catch (error) {
      throw await this.#faultOf(error);
    }
  }

  /** Runs a script for one request. Resolves with what it threw, if it did. Rejects with a fault when the cell died. */
  async run({ script, request, answer, hooks }: RunOptions, visit: Visit): Promise<Thrown | undefined> {
    this.#offer(script);
    const token = randomUUID();
    this.visits.add(visit);
    try {
      const carried =
        script.profile === "snippet" && !("socket" in answer) ? channelRequestOf(request) : undefined;
      if (carried !== undefined) {
        const channel = await this.#channel(script.id);
        return channel instanceof Channel ? await channel.run(carried, answer as Sink, hooks()) : channel;
      }
      this.#front.begin(token, hooks());
      const { cf: visitor, said } = request;
      const all = encodeSaid({ ...said, selvedgeRun: token, script: script.id, ...(visitor && { visitor }) });
      const sent = { ...request, headers: [...request.headers, internal.said, all] };
      const touch = (): void => this.touch();
      return await ("socket" in answer
        ? tunnel(this.#folder.cellSocket, sent, answer, this.#secret, touch)
        : exchange(this.#pool, sent, answer, this.#secret, touch));
    } catch (error) {
      const reason = visit.fault ?? (hasLeft(answer) ? error : await this.#faultOf(error, visit));
      // A channel that breaks while its cell goes on was broken by the snippet.
      if (reason instanceof ChannelError) return thrownOf(reason);
      throw reason;
    } finally {
      this.#answered(visit);
      if (script.profile === "snippet") this.#front.end(token);
      else this.#front.endLater(token);
    }
  }

  /** The channel to a script; what the script threw when it was loaded, if it did. */
  async #channel(id: string): Promise<Channel | Thrown> {
    for (;;) {
      let opening = this.#channels.get(id);
      if (opening === undefined) {
        opening = this.#openChannel(id);
        this.#channels.set(id, opening);
      }
      const channel = await opening;
      if (!(channel instanceof Channel) || channel.isOpen) return channel;
      // It has just been closed, to make room, or with all the others.
      if (this.#isDead) throw new Error("the cell has ended");
      this.#forgetChannel(id, channel);
    }
  }

  async #openChannel(id: string): Promise<Channel | Thrown> {
    const token = `channel-${randomUUID()}`;
    try {
      if (this.#openChannels.size >= this.#scriptsMax) await this.#keep(this.#scriptsMax - 1);
      const path = this.#folder.cellSocket;
      const channel = await Channel.open(path, id, token, this.#secret, () => this.touch());
      if (!(channel instanceof Channel)) {
        this.#channels.delete(id);
        return channel;
      }
      this.#openChannels.set(id, channel);
      this.#front.begin(token, channel.hooks);
      channel.onClose(() => {
        this.#front.end(token);
        this.#forgetChannel(id, channel);
      });
      return channel;
    } catch (error) {
      this.#channels.delete(id);
      throw error;
    }
  }

  #forgetChannel(id: string, channel: Channel): void {
    if (this.#openChannels.get(id) !== channel) return;
    this.#openChannels.delete(id);
    this.#channels.delete(id);
  }

  /** Where the engine of workflows connects to: one WebSocket, over which many invocations run. */
  get laneAddress(): { path: string; headers: Record<string, string> } {
    return {
      path: this.#folder.cellSocket,
      headers: { [internal.said]: encodeSaid({ selvedgeRun: "", lane: this.#secret }) },
    };
  }

  /**
   * As `run`, for an invocation over a lane: what the script asks for until it leaves is answered by the hooks. Who
   * sends it in adds its visit when the script begins.
   */
  enter(script: CellScript, hooks: RunHooks): string {
    this.#offer(script);
    const token = randomUUID();
    this.#front.begin(token, hooks);
    return token;
  }

  leave(token: string, visit: Visit): void {
    if (this.visits.has(visit)) this.#answered(visit);
    this.#front.endLater(token);
  }

  #answered(visit: Visit): void {
    this.visits.delete(visit);
    this.answers++;
    if (this.recent.push(visit) > recentMax) this.recent.shift();
  }

  /** Ends the process at once. Whoever was in it gets a fault, and the most likely culprits are told apart. */
  die(kind: FaultKind): Visit[] {
    if (this.#isDead) return [];
    this.#isDead = true;
    const suspects = kind === "killed" ? [] : this.#suspects();
    for (const visit of this.visits) visit.fault = new CellFault(kind, suspects.includes(visit));
    this.process.kill("SIGKILL");
    this.#dispose();
    return suspects;
  }

  /** Ends the process when nothing is in it any more. */
  close(): void {
    this.#isDead = true;
    this.process.kill("SIGTERM");
    this.#dispose();
    const timer = setTimeout(() => this.process.kill("SIGKILL"), exitGraceMs);
    void this.process.exited.then(() => clearTimeout(timer));
  }

  #dispose(): void {
    this.#front.close();
    void this.#pool.destroy();
    void this.#control.destroy();
    void this.process.exited.then(() => this.#folder.remove());
  }

  #offer(script: CellScript): void {
    this.scripts.add(script.id);
    this.#front.offer(script);
  }

  /**
   * One thread runs everything, so since the last sign of life it has been in one script. That one was sent in before it, or
   * was the first to be sent in after it; or it had answered shortly before, and left something running.
   */
  #suspects(): Visit[] {
    const { lastActivityAt } = this;
    const sent = [...this.visits];
    const later = sent.filter((visit) => visit.sentAt > lastActivityAt + togetherMs);
    const firstLater = later.toSorted((a, b) => a.sentAt - b.sentAt)[0];
    return [
      ...sent.filter((visit) => visit.sentAt <= lastActivityAt + togetherMs || visit === firstLater),
      ...this.recent.filter(
        (visit) => visit.script.profile === "script" && visit.sentAt > lastActivityAt - recentMs,
      ),
    ];
  }

  /** What a broken connection meant: the process may be gone, which is seen a moment later. */
  async #faultOf(error: unknown, visit?: Visit): Promise<unknown> {
    const hasDied = this.#isDead || (await hasEnded(this.process, exitGraceMs));
    if (!hasDied) return error;
    // The exit is reported to the pool first, which says what it was.
    return visit?.fault ?? new CellFault("killed", false);
  }
}

const thrownOf = ({ name, message }: Error): Thrown => ({ name, message, stack: undefined });

/** Whether it was the visitor who broke off. One who asks for no upgrade is not told apart here: that is no error. */
const hasLeft = (answer: Sink | Visitor): boolean => "socket" in answer && answer.socket.destroyed;

function connectTo(path: string, traffic: Traffic, done: buildConnector.Callback): void {
  const socket = connect(path);
  const failed = (error: Error): void => done(error, null);
  socket.once("error", failed).once("connect", () => {
    socket.off("error", failed);
    traffic.add(socket);
    done(null, socket);
  });
}

const togetherMs = 2;
const recentMs = 1000;

/** Sizes are in MB. Only flags that leave V8's code cache valid: without it each isolate compiles workerd's own code, for 3 ms. */
const v8Flags = ({ memoryBytesMax, youngBytesMax }: CellSettings): string[] => [
  `--max-old-space-size=${Math.round(memoryBytesMax / 1024 / 1024)}`,
  // Each request leaves objects of workerd's, on which more memory hangs than V8 knows of: they are collected often.
  `--max-semi-space-size=${youngBytesMax / 1024 / 1024}`,
];

async function hasEnded(process: CellProcess, graceMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, graceMs, false)));
  const ended = await Promise.race([process.exited.then(() => true as const), late]);
  clearTimeout(timer);
  return ended;
}

async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
