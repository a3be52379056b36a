import { newId } from "../../platform/util/ids.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { RunOptions } from "../cell.ts";
import { CellError, CellFault, ObjectRefusal, type FaultKind } from "../errors.ts";
import { newCellRun, type CellRun } from "../gateway/cell-run.ts";
import { bodyAgain } from "../gateway/exchange.ts";
import type { RunHooks } from "../gateway/run-hooks.ts";
import { causeOf } from "../process/exit-cause.ts";
import { scriptHost, type ObjectHost } from "../process/object-config.ts";
import type { ObjectAddress, ObjectEvent, ObjectPlace, ObjectRoute } from "../protocol.ts";
import { answerActing } from "./acting-messages.ts";
import { messages, NamespaceQuarantine, objectFault, overloadedCells, runFailure } from "./faults.ts";
import { afterEnd, gateOf, notedAnswer } from "./cell-log.ts";
import type { CallOptions, ObjectCellsOptions, ObjectTarget } from "./object-cells-options.ts";
import { OpenCell, takeSpare, usedAnswer } from "./open-cell.ts";
import { NearScripts } from "./near-scripts.ts";
import { closesFiles } from "./open-files.ts";
import { Pauses } from "./pauses.ts";
import { resetObject } from "./reset-object.ts";
import { Slots, type SlotOwner } from "./slots.ts";
import { WaitingRequests } from "./waiting-requests.ts";
import { objectKeyOf, StandingTokens, type ActingObject } from "./standing.ts";

const attemptsMax = 3;
const checkEveryMs = 10;
/** Time after which a cell without requests and sockets is ended, and after which it may be ended for another one. */
const idleMs = 60_000;
const roomAfterMs = 2; // calls on their way to it have arrived by then
/** Namespaces of one cell, and further ids that new namespaces may get while it runs. */
const namespacesMax = 64;
const sparesMax = 16;

/**
 * Runs Durable Objects: workerd processes with folders on disk. A namespace is in one process at a time, and the next one
 * starts after the previous one has ended, so an object has one live instance.
 */
export class ObjectCells {
  readonly #options: ObjectCellsOptions;
  /** By namespace. */
  readonly #cells = new Map<string, Promise<OpenCell>>();
  readonly #open = new Map<number, OpenCell>();
  readonly #slots: Slots;
  /** Ends of cells, by namespace and spare id. */
  readonly #ending = new Map<string, Promise<void>>();
  readonly #quarantine = new NamespaceQuarantine();
  readonly #tokens = new StandingTokens();
  readonly #waiting = new WaitingRequests();
  readonly #objects = new WeakMap<CellRun, ActingObject>();
  readonly #pauses = new Pauses();
  readonly near: NearScripts;
  #timer: NodeJS.Timeout | undefined;
  #ids = 0;

  constructor(options: ObjectCellsOptions) {
    this.#options = options;
    this.#slots = new Slots(options.settings, {
      idleSince: (slot) => {
        const open = this.#open.get(slot);
        return open?.isIdle(performance.now(), roomAfterMs) === true ? open.lastUsedAt : undefined;
      },
      isOpen: (slot) => this.#open.has(slot),
      end: (slot) => this.#end(this.#open.get(slot)!, "ended"),
    });
    this.near = new NearScripts(options, this.#slots, () => this.#open.values());
  }

  /**
   * Counts since the start: requests, method calls that were routed, method calls inside cells (as reported by the
   * cells), cells that were ended after a fault, and faults of facets.
   */
  readonly events = { requests: 0, calls: 0, localCalls: 0, cellFaults: 0, facetFaults: 0 };

  /** Number of running cells, and of requests and sockets in them. */
  get counts(): { cells: number; requests: number } {
    const open = [...this.#open.values()];
    return { cells: open.length, requests: open.reduce((sum, { cell }) => sum + cell.runs.size, 0) };
  }

  /** The namespaces of cells that run or start. */
  get namespaces(): Iterable<string> {
    return this.#cells.keys();
  }

  get pids(): number[] {
    return [...this.#open.values()].map(({ cell }) => cell.process.pid);
  }

  /** Sends a request to an object. Rejects with an ObjectRefusal or, for an exception of the object, a CellError. */
  async run(target: ObjectTarget, options: Omit<RunOptions, "script">): Promise<void> {
    this.events.requests++;
    this.#options.sizes.use(target.object);
    await this.#waiting.during(target.object, async () => {
      const object = this.#addressOf(target);
      let request = { ...options.request, metadata: { ...options.request.metadata, object } };
      for (let attempt = 1; ; attempt++) {
        const open = await this.#cellOf(target);
        const cellRun = this.#newRun(target);
        try {
          const noted = notedAnswer(this.#options.log, target.object, options.answer);
          const answer = usedAnswer(open, target.object.id, noted);
          const sent = { ...options, answer, script: cellRun.script };
          const thrown = await open.cell.run({ ...sent, request }, cellRun);
          this.#quarantine.recordSuccess(target.object.namespace);
          if (thrown !== undefined) throw new CellError("exception", thrown.message, { cause: thrown });
          return;
        } catch (error) {
          const isUnread = error instanceof CellFault && error.isUnprocessed && attempt < attemptsMax;
          const body = isUnread && request.body !== null ? bodyAgain(request.body) : null;
          if (!isUnread || body === undefined) throw runFailure(error);
          request = { ...request, body };
        }
      }
    });
  }

  /** Prepares a method call of an object. The calling cell then makes the call over a connection that `RpcTunnels` joins. */
  async route(
    target: ObjectTarget,
    hooks: RunHooks,
    callerSlot: number | undefined,
    { watcher, ...more }: CallOptions = {},
  ): Promise<ObjectRoute> {
    this.events.calls++;
    this.#options.sizes.use(target.object);
    const leave = this.#waiting.enter(target.object);
    try {
      const { slot, cell } = await this.#cellOf(target);
      const cellRun = this.#newRun(target);
      const token = cell.enter(cellRun.script, hooks);
      cell.runs.add(cellRun);
      const object = this.#addressOf(target);
      const event: ObjectEvent = { run: token, script: target.script.id, object, ...more };
      if (watcher?.isTraced === true) event.isTraced = true;
      cell.gateway.objects.calls.expect(event, () => {
        cell.leave(token, cellRun);
        this.#options.log?.noteAnswer(target.object.namespace, target.object.id);
        if (cellRun.fault === undefined) this.#quarantine.recordSuccess(target.object.namespace);
        else this.#options.tunnels.noteFault(token, objectFault(cellRun.fault));
        watcher?.end(cellRun.fault);
        leave();
      });
      if (slot !== callerSlot) return { slot, token };
      cell.gateway.objects.calls.take(token);
      return { event };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * Returns the object if it is in the cell of `slot`: calls from there need not pass the gateway. With a log all calls
   * pass the gateway, because the log notes each answer.
   */
  async grant({ object, script }: ObjectTarget, slot: number | undefined): Promise<ObjectPlace | undefined> {
    const open = await this.#cells.get(object.namespace);
    const isElsewhere = open === undefined || open.slot !== slot || open.cell.isDead;
    if (isElsewhere || this.#options.log !== undefined) return undefined;
    if (this.#pauses.over(objectKeyOf(object)) !== undefined) return undefined;
    this.#options.sizes.use(object);
    open.use(object.id);
    open.cell.offer(script);
    return { script: script.id, object: this.#addressOf({ object }) };
  }

  /** An id for a new namespace of a group: a spare id of a running cell of the group, if there is one. */
  newId(group: string): string {
    const found = takeSpare(this.#open.values(), group, (id) => this.#owns(id));
    if (found === undefined) return newId();
    this.#cells.set(found.id, Promise.resolve(found.open));
    return found.id;
  }

  /** Takes back an id of `newId` that no namespace uses. */
  giveBack(id: string): void {
    for (const open of this.#open.values()) {
      if (!open.namespaces.delete(id)) continue;
      this.#cells.delete(id);
      open.spares.push(id);
    }
  }

  /** Ends the objects of a deleted namespace, and removes their data. */
  async forget(namespace: string): Promise<void> {
    const open = await this.#cells.get(namespace)?.catch(() => undefined);
    this.#cells.delete(namespace);
    if (open !== undefined && !open.cell.isDead) {
      open.namespaces.delete(namespace);
      await open.cell.reset(namespace).catch(() => this.#end(open, "ended"));
    }
    await this.#ending.get(namespace);
    if (this.#owns(namespace)) this.#options.log?.forget(namespace);
    this.#options.sizes.forget(namespace);
    await this.#options.folders.remove(namespace);
  }

  /** Ends an object and deletes its data, in its cell, which starts if it is not running. */
  async remove(target: ObjectTarget): Promise<void> {
    await resetObject(async () => this.#cellOf(target), target.object, this.#options.logger);
    await this.#options.sizes.changed(target.object);
  }

  /** Runs work while no process has files of an object open: it ends, and calls of it wait. */
  async pause<T>(object: ActingObject, work: () => Promise<T>): Promise<T> {
    return this.#pauses.during(objectKeyOf(object), async () => {
      await this.end(object, "Durable Object reset because its storage was restored.");
      await this.#release(object, "all");
      const result = await work();
      await this.#options.sizes.changed(object);
      return result;
    });
  }

  async end({ namespace, id }: ActingObject, reason: string): Promise<void> {
    const open = await this.#cells.get(namespace)?.catch(() => undefined);
    await open?.cell.reset(namespace, { ended: id, reason }).catch(() => {}); // its cell has ended
  }

  /** Waits until an ended object has closed its files. Ends the cell if that takes too long. */
  async #release(object: ActingObject, part: "all" | "facets"): Promise<void> {
    const { namespace, id } = object;
    const open = await this.#cells.get(namespace)?.catch(() => undefined);
    if (open !== undefined && !open.cell.isDead) {
      const hasRuns = (): boolean => [...open.cell.runs].some((run) => this.#objects.get(run)?.id === id);
      if (!(await closesFiles(this.#options.folders.path, object, open.cell, { part, hasRuns })))
        this.#end(open, "ended");
    }
    await this.#ending.get(namespace);
  }

  /** Called while the host of an object waits to start an instance, with all facets closed. Runs a pending restore. */
  async #beforeStart(object: ActingObject): Promise<void> {
    const { restores } = this.#options;
    if (restores?.isAwaited(object) !== true) return;
    await this.#release(object, "facets");
    await restores.run(object);
  }

  /** Removes data of namespaces that no longer exist: the program may have ended before it was removed. */
  async sweep(exists: (namespaces: readonly string[]) => Promise<ReadonlySet<string>>): Promise<void> {
    const spares = (): Set<string> => new Set([...this.#open.values()].flatMap((open) => open.spares));
    await this.#options.folders.sweep(exists, spares);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#slots.close();
    await this.endAll();
  }

  /** Kills the processes of namespaces, at once. Resolves when they are gone, with those that were about to start. */
  async endAll(isIn: (namespace: string) => boolean = () => true): Promise<void> {
    const end = (): void => {
      for (const open of [...this.#open.values()])
        if (open.namespaces.size === 0 || [...open.namespaces].some(isIn)) this.#end(open, "ended");
    };
    end();
    await Promise.allSettled([...this.#cells].flatMap(([id, opening]) => (isIn(id) ? [opening] : [])));
    end();
    await Promise.all([...this.#ending].flatMap(([id, ending]) => (isIn(id) ? [ending] : [])));
  }

  #owns(namespace: string): boolean {
    return this.#options.ownership?.owns(namespace) ?? true;
  }

  #addressOf({ object }: Pick<ObjectTarget, "object">): ObjectAddress {
    const address = { ...object, standing: this.#tokens.tokenOf(object) };
    return this.#options.restores?.isAwaited(object) === true ? { ...address, isRestored: true } : address;
  }

  /** The whole cell has one limit of memory, because objects of one script share an isolate. */
  #newRun({ script, object }: ObjectTarget): CellRun {
    const cellRun = newCellRun({ ...script, memoryBytes: this.#options.settings.cellBytesMax });
    this.#objects.set(cellRun, { namespace: object.namespace, id: object.id });
    return cellRun;
  }

  async #cellOf(target: ObjectTarget): Promise<OpenCell> {
    const { namespace, id } = target.object;
    const { refusal } = this.#options;
    if (refusal !== undefined) throw new ObjectRefusal(refusal);
    for (;;) {
      await this.#options.ownership?.restore(target.object);
      for (let over; (over = this.#pauses.over(objectKeyOf(target.object))) !== undefined;) await over;
      if (!this.#owns(namespace)) throw overloadedCells();
      const opening = this.#cells.get(namespace) ?? this.#start(target);
      const open = await opening;
      if (this.#pauses.over(objectKeyOf(target.object)) !== undefined) continue;
      open.use(id);
      if (!open.cell.isDead) return open;
      if (this.#cells.get(namespace) === opening) this.#cells.delete(namespace);
    }
  }

  #start(target: ObjectTarget): Promise<OpenCell> {
    const { group, object, script, host = scriptHost } = target;
    const isAlone = this.#quarantine.has(object.namespace);
    if (!isAlone) this.#makeRoom(group);
    const others = isAlone
      ? []
      : this.#options
          .namespacesOf(group)
          .filter((id) => id !== object.namespace && !this.#cells.has(id))
          .filter((id) => !this.#quarantine.has(id) && this.#owns(id));
    const namespaces = [object.namespace, ...others.slice(0, namespacesMax - 1)];
    const owner = { accountId: script.accountId, isPlatform: host !== scriptHost };
    const opening = this.#boot({ group, isAlone, host, owner }, namespaces, script.cpuMs);
    for (const id of namespaces) this.#cells.set(id, opening);
    unawaited(this.#forgetFailed(opening, namespaces));
    return opening;
  }

  /** A running cell cannot get more namespaces than it has spare ids. An idle one of the group starts again with all. */
  #makeRoom(group: string): void {
    const mayEnd = (open: OpenCell): boolean =>
      !open.isAlone && open.namespaces.size < namespacesMax && open.isIdle(performance.now(), roomAfterMs);
    for (const open of this.#open.values())
      if (open.group === group && mayEnd(open)) return this.#end(open, "ended");
  }

  async #forgetFailed(opening: Promise<OpenCell>, namespaces: readonly string[]): Promise<void> {
    try {
      await opening;
    } catch {
      for (const id of namespaces) if (this.#cells.get(id) === opening) this.#cells.delete(id);
    }
  }

  async #boot(
    assignment: { group: string; isAlone: boolean; host: ObjectHost; owner: SlotOwner },
    namespaces: readonly string[],
    cpuMs: number,
  ): Promise<OpenCell> {
    const { settings, folders, tunnels, logger, log } = this.#options;
    const slot = await this.#slots.claim(assignment.owner);
    const spares = assignment.isAlone ? [] : Array.from({ length: sparesMax }, newId);
    const all = [...namespaces, ...spares];
    try {
      await Promise.all(all.map(async (id) => this.#ending.get(id)));
      await folders.create(all);
      log?.follow(all);
      const { Cell } = await import("../cell.ts");
      const id = ++this.#ids;
      const gate = gateOf(this.#options, all, (error) => this.#endHeld(id, error));
      const objects = { folder: folders.path, namespaces: all, slot, host: assignment.host };
      const noteLine = (line: string): void => logger.debug({ object_cell: id }, line);
      const cell = await Cell.boot(id, settings, noteLine, { tunnels, objects, gate });
      // A namespace with a cell of its own gets its script's CPU limit. A shared cell stalls after `stallCpuMs`.
      const stallCpuMs = Math.max(settings.stallCpuMs, assignment.isAlone ? cpuMs : 0);
      const limits = { ...settings, stallCpuMs };
      const open = new OpenCell({ slot, ...assignment }, cell, namespaces, spares, limits);
      this.#open.set(slot, open);
      tunnels.open(slot, cell.rpcSocket, gate);
      cell.gateway.objects.onFacetFault = () => this.events.facetFaults++;
      cell.gateway.objects.onLocalCalls = (count) => (this.events.localCalls += count);
      answerActing(open, this.#tokens, this.#options, async (object) => this.#beforeStart(object));
      unawaited(cell.process.exited.then((exit) => this.#end(open, causeOf(exit))));
      this.#timer ??= setInterval(() => this.#check(), checkEveryMs).unref();
      return open;
    } catch (error) {
      this.#slots.free(slot);
      logger.error({ err: error }, "a cell of objects could not be started");
      log?.unfollow(all);
      throw overloadedCells();
    }
  }

  #endHeld(id: number, error: unknown): void {
    const open = [...this.#open.values()].find(({ cell }) => cell.id === id);
    if (open === undefined) return;
    this.#options.logger.error({ err: error }, messages.held);
    this.#end(open, "ended");
  }

  #check(): void {
    const now = performance.now();
    for (const open of [...this.#open.values()]) {
      const fault = open.check(now);
      if (fault !== undefined) this.#end(open, fault);
      else if (open.isIdle(now, idleMs)) this.#end(open, "ended");
    }
    this.#slots.retry();
    const busy = [...this.#open.values()].filter(({ cell }) => cell.runs.size > 0);
    unawaited(this.#options.sizes.checkIfDue(now, () => busy.flatMap(({ namespaces }) => [...namespaces])));
  }

  /** Kills a cell. Its namespaces can start elsewhere when the process is gone. */
  #end(open: OpenCell, kind: FaultKind): void {
    const { slot, cell, namespaces, spares, group } = open;
    if (this.#open.get(slot) !== open) return;
    this.#open.delete(slot);
    this.#options.tunnels.close(slot);
    const runs = cell.die(kind);
    const culprits = new Set(runs.flatMap((run) => this.#objects.get(run)?.namespace ?? []));
    this.near.noteFaults(runs);
    cell.gateway.objects.calls.close();
    if (kind !== "ended" && kind !== "killed") {
      this.events.cellFaults++;
      this.#options.logger.warn({ group, fault: kind, quarantined: [...culprits] }, messages.fault);
      this.#quarantine.add(culprits);
    }
    const gone = this.#waitForEnd(open);
    this.#slots.ending(slot, afterEnd(gone, this.#options.logger));
    for (const id of namespaces) this.#cells.delete(id);
    for (const id of [...namespaces, ...spares]) this.#ending.set(id, gone);
  }

  async #waitForEnd({ cell, namespaces, spares }: OpenCell): Promise<void> {
    await cell.process.gone();
    for (const id of namespaces) this.#ending.delete(id); // also if the last writes cannot be read now
    try {
      this.#options.log?.unfollow([...namespaces, ...spares]);
      await this.#options.folders.removeEmpty(spares);
    } finally {
      for (const id of spares) this.#ending.delete(id);
    }
  }
}
