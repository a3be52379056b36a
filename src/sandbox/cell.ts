import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { Client, Pool } from "undici";
import type { CurrentData } from "../platform/processes/main-channel.ts";
import { endsWithin, within } from "../platform/util/ends-within.ts";
import { readUpTo } from "../platform/util/read-up-to.ts";
import type { Kind } from "./limits/admission.ts";
import { CellFolder } from "./process/cell-folder.ts";
import type { CellExtras } from "./cell-extras.ts";
import { LeftRuns } from "./left-runs.ts";
import { SnippetChannels } from "./snippet-channels.ts";
import type { NearCell } from "./near-cell.ts";
import { cellHeaders, type RunMetadata } from "./protocol.ts";
import { cellsFolder } from "./process/cells-folder.ts";
import { readIds } from "./gateway/cell-messages.ts";
import { SnippetChannel, ChannelError, channelRequestOf } from "./gateway/channel.ts";
import { CellError, CellFault, type FaultKind } from "./errors.ts";
import {
  encodeMetadata,
  exchange,
  headerBytesMax,
  type CellRequest,
  type Sink,
  type Thrown,
} from "./gateway/exchange.ts";
import { heldAt, type Gate } from "./connections/held-socket.ts";
import type { RunHooks } from "./gateway/run-hooks.ts";
import { GatewayServer } from "./gateway/gateway-server.ts";
import { askLocalCall } from "./gateway/object-questions.ts";
import { launch } from "./process/launch.ts";
import { v8Flags } from "./process/v8-flags.ts";
import { CellProcess } from "./process/process.ts";
import type { CellScript } from "./process/script.ts";
import { protocolLimits, type CellSettings } from "./settings.ts";
import { connectorTo, Traffic } from "./limits/traffic.ts";
import { joinVisitorWebSocket, type Visitor } from "./gateway/visitor-web-socket.ts";
import { whenCurrent } from "./when-current.ts";
import { isUnprocessed } from "./gateway/unprocessed.ts";
import { endCellRun, newToken, possibleCulpritsOf, type CellRun } from "./gateway/cell-run.ts";
import { unawaited } from "../platform/util/uncaught.ts";

/** The parameters of one run of a script. */
export interface RunOptions {
  script: CellScript;
  /** A request without a body may be sent again after a fault; one with a body is sent once. */
  request: CellRequest;
  /** Receives the answer. Upgrades need the socket of the visitor. */
  answer: Sink | Visitor;
  /** Called for each attempt. */
  hooks: () => RunHooks;
  /** Default: `request`, a visitor's request. */
  kind?: Kind;
  /** The cell of objects in which the script may run now. */
  near?: (() => NearCell | undefined) | undefined;
}

const exitGraceMs = 1000;
const recentMax = 32;
/** The fraction of scripts and channels that stays loaded when memory is short. */
const shareKept = 15 / 16;

/** A workerd process with its sockets, and the runs that are in it. */
export class Cell {
  readonly id: number;
  readonly runs = new Set<CellRun>();
  /** The runs that were answered last: work that they left running may still cause a fault. */
  readonly recent: CellRun[] = [];
  /** Numbers of runs that were sent and answered, of objects that started, and of messages to their WebSockets. */
  begun = 0;
  answers = 0;
  objectStarts = 0;
  objectMessages = 0;
  /** Ids of the scripts that were sent to this cell. */
  readonly scripts = new Set<string>();
  lastActivityAt = performance.now();
  readonly process: CellProcess;
  readonly traffic: Traffic;
  readonly #folder: CellFolder;
  readonly gateway: GatewayServer;
  readonly #secret: string;
  readonly #pool: Pool;
  /** Connects to the cell. */
  readonly #open: () => Socket;
  readonly control: Client; // orders and questions to the system worker
  readonly #left = new LeftRuns(() => this.control);
  readonly #channels: SnippetChannels;
  readonly #mainChannel: CurrentData | undefined;
  /** Why it ended, or is about to; undefined before. */
  endedBy: FaultKind | "replaced" | undefined;
  private constructor(
    id: number,
    process: CellProcess,
    gateway: GatewayServer,
    folder: CellFolder,
    secret: string,
    traffic: Traffic,
    { scriptsMax, mainChannel }: CellSettings,
    gate: Gate | undefined,
  ) {
    this.id = id;
    this.#open = () => {
      const socket = connect(folder.cellSocket);
      traffic.add(socket);
      return heldAt(gate, socket);
    };
    this.process = process;
    this.traffic = traffic;
    this.gateway = gateway;
    this.#folder = folder;
    this.#secret = secret;
    // No timeouts here: the gateway has its own, and a script may take long.
    const options = {
      connect: connectorTo(folder.cellSocket, traffic, (socket) => heldAt(gate, socket)),
      headersTimeout: 0,
      bodyTimeout: 0,
      pipelining: 1,
    };
    this.#pool = new Pool("http://cell", { ...options, maxHeaderSize: headerBytesMax });
    this.control = new Client("http://cell", options);
    this.#channels = new SnippetChannels(this, scriptsMax);
    this.#mainChannel = mainChannel;
  }

  /** Starts a process. Resolves when the system worker answers; rejects with its last lines of standard error. */
  static async boot(
    id: number,
    settings: CellSettings,
    onMessage: (line: string) => void,
    { tunnels, objects, gate }: CellExtras = {},
  ): Promise<Cell> {
    const folder = new CellFolder(await cellsFolder());
    const secret = randomUUID();
    let cell: Cell | undefined;
    const traffic = new Traffic();
    const { mainChannel } = settings;
    const paced = { ping: async () => cell?.ping(), cpuMs: () => cell?.process.cpuMs() ?? 0 };
    const ways = { tunnels, slot: objects?.slot, gate, mainChannel };
    const gateway = new GatewayServer(secret, traffic, () => cell?.touch(), ways, paced);
    try {
      folder.write(secret, v8Flags(settings), settings, objects);
      await gateway.listen(folder.gatewaySocket);
      folder.allowConnect(folder.gatewaySocket);
      const process = new CellProcess(launch(folder.path, objects), onMessage);
      cell = new Cell(id, process, gateway, folder, secret, traffic, settings, gate);
      if (objects !== undefined) gateway.local = async (token) => askLocalCall(cell!.#pool, token);
      await within(settings.bootTimeoutMs, process.listening);
      await within(settings.bootTimeoutMs, cell.ping());
      return cell;
    } catch (error) {
      cell?.process.kill("SIGKILL");
      const exit = cell === undefined ? undefined : await cell.process.exited;
      gateway.close();
      folder.remove();
      throw new Error(`a cell did not start: ${exit?.lastWords ?? ""}`, { cause: error });
    }
  }

  /** Number of times that the cell loaded a script, reloads included. */
  get loads(): number {
    return this.gateway.loads;
  }

  /** Bytes of code that were sent to the cell. */
  get loadedBytes(): number {
    return this.gateway.loadedBytes;
  }

  /** Number of requests that scripts of the cell have made. */
  get subrequests(): number {
    return this.gateway.requests + this.gateway.objects.localCalls;
  }

  get isDead(): boolean {
    return this.endedBy !== undefined;
  }

  touch(): void {
    this.lastActivityAt = performance.now();
  }

  /** Resolves when the cell's thread is free to answer. */
  ping = async (): Promise<unknown> => this.#order("/");

  /** Sends an order to the system worker. Resolves with the status. */
  async #order(path: string, order?: RunMetadata): Promise<number> {
    const headers = order === undefined ? [] : [cellHeaders.metadata, encodeMetadata(order)];
    const { statusCode, body } = await this.control.request({ method: "GET", path, headers });
    await body.dump();
    return statusCode;
  }

  async openChannel(id: string, token: string): Promise<SnippetChannel | Thrown> {
    return SnippetChannel.open(this.#folder.cellSocket, id, token, this.#secret, () => this.touch());
  }

  /** Lets the cell unload a script whose channel has closed. */
  unpin = async (id: string): Promise<unknown> => this.#order("/", { selvedgeRun: "unpin", script: id });

  /** Unloads the least recently used scripts, up to a sixteenth of all. Scripts with runs stay. */
  async unloadSome(): Promise<void> {
    await this.#channels.closeIdle(Math.floor(this.#channels.size * shareKept));
    await this.#unload(`share=${shareKept}`);
  }

  /** Unloads the least recently used scripts until at most `count` are left. */
  async keep(count: number): Promise<void> {
    await this.#channels.closeIdle(count);
    await this.#unload(`keep=${count}`);
  }

  async #unload(query: string): Promise<void> {
    const { body } = await this.control.request({ method: "GET", path: `/?${query}` });
    const loaded = readIds(await readUpTo(body, protocolLimits.controlBytes));
    const inUse = new Set([...this.runs].map(({ script }) => script.id));
    for (const id of this.scripts) if (!loaded.has(id) && !inUse.has(id)) this.scripts.delete(id);
  }

  /** Loads a script without running it, so that loading is not counted as CPU time of a request. */
  async load(script: CellScript): Promise<void> {
    this.offer(script);
    try {
      await this.#order("/", { selvedgeRun: "", script: script.id });
    } catch (error) {
      throw await this.#faultOf(error);
    }
  }

  /**
   * Runs a script for one request. Resolves with the script's exception, if it threw one. Rejects with a
   * CellFault when the cell dies, and with a CellError when the run was evicted.
   */
  async run({ script, request, answer, hooks }: RunOptions, cellRun: CellRun): Promise<Thrown | undefined> {
    this.offer(script);
    const token = (cellRun.token = newToken());
    this.runs.add(cellRun);
    this.begun++;
    let metadata = "";
    try {
      const carried =
        script.profile === "snippet" && !("socket" in answer) ? channelRequestOf(request) : undefined;
      if (carried !== undefined) {
        const channel = await this.#channels.of(script.id);
        return channel instanceof SnippetChannel
          ? await channel.run(carried, answer as Sink, whenCurrent(hooks(), this.#mainChannel))
          : channel;
      }
      this.gateway.begin(token, hooks());
      const { cf: visitor, metadata: more } = request;
      const ids = { selvedgeRun: token, script: script.id };
      metadata = encodeMetadata({ ...more, ...ids, ...(visitor && { visitor }) });
      const sent = { ...request, headers: [...request.headers, cellHeaders.metadata, metadata] };
      const touch = (): void => this.touch();
      return await ("socket" in answer
        ? joinVisitorWebSocket(
            this.#open,
            sent,
            answer,
            this.#secret,
            touch,
            cellRun,
            this.gateway.webSockets,
          )
        : exchange(this.#pool, sent, answer, this.#secret, touch, cellRun));
    } catch (error) {
      if (error instanceof CellError) throw error; // the run was evicted for other runs
      const reason = cellRun.fault ?? (hasLeft(answer) ? error : await this.#faultOf(error, cellRun));
      if (reason instanceof CellFault) reason.isUnprocessed = isUnprocessed(error, request, metadata);
      if (reason instanceof CellFault) reason.hasObjects = this.gateway.local !== undefined;
      // If only the channel broke and the cell continues, the snippet broke the channel.
      if (reason instanceof ChannelError)
        return { name: reason.name, message: reason.message, stack: undefined };
      throw reason;
    } finally {
      if (metadata !== "" && !cellRun.hasAnswer && !this.isDead) this.#left.add(token);
      this.#answered(cellRun);
      if (script.profile === "snippet") this.gateway.end(token);
      else this.gateway.endLater(token);
    }
  }

  /** For a cell of objects: where calls arrive. */
  get rpcSocket(): string {
    return this.#folder.rpcSocket;
  }

  /** For a cell of objects: ends the instances of a namespace, ends one, or ends one and deletes its data. */
  async reset(namespace: string, one: Record<string, string> = {}): Promise<void> {
    const query = String(new URLSearchParams({ reset: namespace, ...one }));
    const status = await within(protocolLimits.resetMs, this.#order(`/?${query}`));
    if (status !== 204) throw new Error(`the cell answered a reset with ${status}`);
  }

  /** Address of the stream of workflows: one WebSocket that carries many invocations. */
  get workflowStreamAddress(): { path: string; headers: Record<string, string> } {
    return {
      path: this.#folder.cellSocket,
      headers: { [cellHeaders.metadata]: encodeMetadata({ selvedgeRun: "", workflowStream: this.#secret }) },
    };
  }

  /** As `run`, for a workflow stream: the hooks answer until `leave`. The caller adds its run to `runs`. */
  enter(script: CellScript, hooks: RunHooks): string {
    this.offer(script);
    const token = newToken();
    this.gateway.begin(token, hooks);
    return token;
  }

  leave(token: string, cellRun: CellRun): void {
    if (this.runs.has(cellRun)) this.#answered(cellRun);
    this.gateway.endLater(token);
  }

  #answered(cellRun: CellRun): void {
    this.runs.delete(cellRun);
    endCellRun(cellRun);
    this.answers++;
    if (this.recent.push(cellRun) > recentMax) this.recent.shift();
  }

  /** Kills the process. Every run in it gets a CellFault. Returns the runs that may have caused the fault. */
  die(kind: FaultKind): CellRun[] {
    if (this.isDead) return [];
    this.endedBy = kind;
    const possibleCulprits = kind === "killed" || kind === "ended" ? [] : this.possibleCulprits;
    for (const cellRun of this.runs) cellRun.fault = new CellFault(kind, possibleCulprits.includes(cellRun));
    this.process.kill("SIGKILL");
    this.#dispose(async () => {
      // Answers that the cell sent before its end are still read. The error of the socket then shows whether
      // a request was read.
      await this.process.exited;
      await endsWithin(exitGraceMs, this.#pool.close());
    });
    return possibleCulprits;
  }

  /** Moves the runs that can be sent to another cell. Returns the runs that may have caused the fault. */
  abandon(kind: FaultKind): CellRun[] {
    const { possibleCulprits } = this;
    for (const cellRun of this.runs) {
      if (!cellRun.isMovable()) continue;
      cellRun.fault = new CellFault(kind, possibleCulprits.includes(cellRun));
      cellRun.controller?.abort(cellRun.fault);
    }
    this.#channels.closeAll();
    return possibleCulprits;
  }

  /** Ends a process that has no runs left. */
  close(): void {
    this.endedBy ??= "replaced";
    this.process.kill("SIGTERM");
    this.#dispose();
    const timer = setTimeout(() => this.process.kill("SIGKILL"), exitGraceMs);
    unawaited(this.process.exited.then(() => clearTimeout(timer)));
  }

  #dispose(settled = async (): Promise<void> => {}): void {
    this.gateway.close();
    unawaited(settled().then(() => this.#pool.destroy()));
    unawaited(this.control.destroy());
    unawaited(this.process.exited.then(() => this.#folder.remove()));
  }

  /** Lets the cell load a script. */
  offer(script: CellScript): void {
    this.scripts.add(script.id);
    this.gateway.offer(script);
  }

  get possibleCulprits(): CellRun[] {
    return possibleCulpritsOf(this);
  }

  /** The cause of a broken connection. Waits for the exit of the process, which is reported slightly later. */
  async #faultOf(error: unknown, cellRun?: CellRun): Promise<unknown> {
    const hasDied = this.isDead || (await endsWithin(exitGraceMs, this.process.exited));
    if (!hasDied) return error;
    // `Cells` handles the exit first, and sets the fault of each run.
    return cellRun?.fault ?? new CellFault("killed", false);
  }
}

/** Whether the visitor closed the connection. Only upgrades need this check. */
const hasLeft = (answer: Sink | Visitor): boolean => "socket" in answer && answer.socket.destroyed;
