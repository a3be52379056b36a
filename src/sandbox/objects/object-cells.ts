import { newId } from "../../platform/util/ids.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { RunOptions } from "../cell.ts";
import { CellError, CellFault, ObjectRefusal, type FaultKind } from "../errors.ts";
import { newCellRun, type CellRun } from "../gateway/cell-run.ts";
import type { RunHooks } from "../gateway/run-hooks.ts";
import { causeOf } from "../process/exit-cause.ts";
import { scriptHost, type ObjectHost } from "../process/object-config.ts";
import type { ObjectAddress, ObjectEvent, ObjectGrant, ObjectRoute } from "../protocol.ts";
import { answerActing } from "./acting-messages.ts";
import { faultMessage, Faults, heldMessage, objectFault, overloadedCells } from "./faults.ts";
import { gateOf, notedAnswer } from "./cell-log.ts";
import type { CallOptions, ObjectCellsOptions, ObjectTarget } from "./object-cells-options.ts";
import { OpenCell, takeSpare, usedAnswer } from "./open-cell.ts";
import { closesFiles } from "./open-files.ts";
import { Pauses } from "./pauses.ts";
import { Slots, type SlotOwner } from "./slots.ts";
import { WaitingRequests } from "./waiting-requests.ts";
import { keyOf, StandingTokens, type ActingObject } from "./standing.ts";

const attemptsMax = 3;
const lookEveryMs = 10;
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
  /** Ends of cells, by namespace. */
  readonly #ending = new Map<string, Promise<void>>();
  readonly #faults = new Faults();
  readonly #tokens = new StandingTokens();
  readonly #waiting = new WaitingRequests();
  readonly #objects = new WeakMap<CellRun, ActingObject>();
  readonly #pauses = new Pauses();
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

  /** Pids of the running cells. */
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
          this.#faults.recordSuccess(target.object.namespace);
          if (thrown !== undefined) throw new CellError("exception", thrown.message, { cause: thrown });
          return;
        } catch (error) {
          if (!(error instanceof CellFault)) throw error;
          const body = request.body === null ? null : request.body.again?.();
          if (!error.isUnprocessed || body === undefined || attempt >= attemptsMax) throw objectFault(error);
          request = { ...request, body };
        }
      }
    });
  }

  /** Prepares a method call of an object. The calling cell then makes the call over a connection that `Doors` joins. */
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
      const cellRun: CellRun = this.#newRun(target);
      const token = cell.enter(cellRun.script, hooks);
      cell.runs.add(cellRun);
      const object = this.#addressOf(target);
      const event: ObjectEvent = { run: token, script: target.script.id, object, ...more };
      if (watcher?.isTraced === true) event.isTraced = true;
      cell.gateway.objects.calls.expect(event, () => {
        cell.leave(token, cellRun);
        this.#options.log?.noteAnswer(target.object.namespace, target.object.id);
        if (cellRun.fault === undefined) this.#faults.recordSuccess(target.object.namespace);
        else this.#options.doors.noteFault(token, objectFault(cellRun.fault));
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
  async grant({ object, script }: ObjectTarget, slot: number | undefined): Promise<ObjectGrant | undefined> {
    const open = await this.#cells.get(object.namespace);
    const isElsewhere = open === undefined || open.slot !== slot || open.cell.isDead;
    if (isElsewhere || this.#options.log !== undefined) return undefined;
    if (this.#pauses.over(keyOf(object)) !== undefined) return undefined;
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
    const { namespace, id } = target.object;
    const { cell } = await this.#cellOf(target);
    await cell.reset(namespace, { object: id });
    await this.#options.sizes.changed(target.object);
  }

  /** Runs work while no process has files of an object open: it ends, and calls of it wait. */
  async pause<T>(object: ActingObject, work: () => Promise<T>): Promise<T> {
    return this.#pauses.during(keyOf(object), async () => {
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
    const { folders } = this.#options;
    const found = await folders.list(); // before the database is read: see `newId`
    const existing = await exists(found);
    const spares = new Set([...this.#open.values()].flatMap((open) => open.spares));
    for (const id of found) if (!existing.has(id) && !spares.has(id)) await folders.remove(id);
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
        if ([...open.namespaces].some(isIn)) this.#end(open, "ended");
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
      for (let over; (over = this.#pauses.over(keyOf(target.object))) !== undefined;) await over;
      if (!this.#owns(namespace)) throw overloadedCells();
      const opening = this.#cells.get(namespace) ?? this.#start(target);
      const open = await opening;
      if (this.#pauses.over(keyOf(target.object)) !== undefined) continue;
      open.use(id);
      if (!open.cell.isDead) return open;
      if (this.#cells.get(namespace) === opening) this.#cells.delete(namespace);
    }
  }

  #start(target: ObjectTarget): Promise<OpenCell> {
    const { group, object, script, host = scriptHost } = target;
    const isAlone = this.#faults.isSuspect(object.namespace);
    if (!isAlone) this.#makeRoom(group);
    const others = isAlone
      ? []
      : this.#options
          .namespacesOf(group)
          .filter((id) => id !== object.namespace && !this.#cells.has(id))
          .filter((id) => !this.#faults.isSuspect(id) && this.#owns(id));
    const namespaces = [object.namespace, ...others.slice(0, namespacesMax - 1)];
    const owner = { accountId: script.accountId, isPlatform: host !== scriptHost };
    const opening = this.#boot({ group, isAlone, host, owner }, namespaces, script.cpuMs);
    for (const id of namespaces) this.#cells.set(id, opening);
    unawaited(this.#forgetFailed(opening, namespaces));
    return opening;
  }

  /** A running cell cannot get more namespaces than it has spare ids. An idle one of the group starts again with all. */
  #makeRoom(group: string): void {
    const now = performance.now();
    const mayEnd = (open: OpenCell): boolean =>
      !open.isAlone && open.namespaces.size < namespacesMax && open.isIdle(now, roomAfterMs);
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
    place: { group: string; isAlone: boolean; host: ObjectHost; owner: SlotOwner },
    namespaces: readonly string[],
    cpuMs: number,
  ): Promise<OpenCell> {
    const { settings, folders, doors, logger, log } = this.#options;
    const slot = await this.#slots.claim(place.owner);
    try {
      await Promise.all(namespaces.map(async (id) => this.#ending.get(id)));
      const spares = place.isAlone ? [] : Array.from({ length: sparesMax }, newId);
      const all = [...namespaces, ...spares];
      folders.create(all);
      log?.follow(all);
      const { Cell } = await import("../cell.ts");
      const id = ++this.#ids;
      const gate = gateOf(this.#options, all, (error) => this.#endHeld(id, error));
      const onMessage = (line: string): void => logger.debug({ object_cell: id }, line);
      const objects = { folder: folders.path, namespaces: all, slot, host: place.host };
      const cell = await Cell.boot(id, settings, onMessage, { doors, objects, gate });
      // A namespace with a cell of its own gets its script's CPU limit. A shared cell stalls after `stallCpuMs`.
      const limits = place.isAlone
        ? { ...settings, stallCpuMs: Math.max(settings.stallCpuMs, cpuMs) }
        : settings;
      const open = new OpenCell({ slot, ...place }, cell, namespaces, spares, limits);
      this.#open.set(slot, open);
      doors.open(slot, cell.door, gate);
      cell.gateway.objects.onFacetFault = () => this.events.facetFaults++;
      cell.gateway.objects.onLocalCalls = (count) => (this.events.localCalls += count);
      answerActing(open, this.#tokens, this.#options, async (object) => this.#beforeStart(object));
      unawaited(cell.process.exited.then((exit) => this.#end(open, causeOf(exit))));
      this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref();
      return open;
    } catch (error) {
      this.#slots.free(slot);
      logger.error({ err: error }, "a cell of objects could not be started");
      throw overloadedCells();
    }
  }

  #endHeld(id: number, error: unknown): void {
    const open = [...this.#open.values()].find(({ cell }) => cell.id === id);
    if (open === undefined) return;
    this.#options.logger.error({ err: error }, heldMessage);
    this.#end(open, "ended");
  }

  #look(): void {
    const now = performance.now();
    for (const open of [...this.#open.values()]) {
      const fault = open.look(now);
      if (fault !== undefined) this.#end(open, fault);
      else if (open.isIdle(now, idleMs)) this.#end(open, "ended");
    }
    this.#slots.retry();
    const busy = [...this.#open.values()].filter(({ cell }) => cell.runs.size > 0);
    unawaited(this.#options.sizes.lookIfDue(now, () => busy.flatMap(({ namespaces }) => [...namespaces])));
  }

  /** Kills a cell. Its namespaces can start elsewhere when the process is gone. */
  #end(open: OpenCell, kind: FaultKind): void {
    const { slot, cell, namespaces } = open;
    if (this.#open.get(slot) !== open) return;
    this.#open.delete(slot);
    this.#options.doors.close(slot);
    const suspects = new Set(
      cell.die(kind).flatMap((cellRun) => this.#objects.get(cellRun)?.namespace ?? []),
    );
    cell.gateway.objects.calls.close();
    if (kind !== "ended" && kind !== "killed") {
      this.events.cellFaults++;
      this.#options.logger.warn({ group: open.group, fault: kind, suspects: [...suspects] }, faultMessage);
      this.#faults.record(suspects);
    }
    const gone = this.#waitForEnd(open);
    this.#slots.ending(slot, gone);
    for (const id of namespaces) {
      this.#cells.delete(id);
      this.#ending.set(id, gone);
    }
  }

  async #waitForEnd({ cell, namespaces, spares }: OpenCell): Promise<void> {
    await cell.process.gone();
    this.#options.log?.unfollow([...namespaces, ...spares]);
    for (const id of namespaces) this.#ending.delete(id);
    await this.#options.folders.removeEmpty(spares);
  }
}
