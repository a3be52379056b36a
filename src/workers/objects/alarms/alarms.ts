import type { Logger } from "pino";
import type { Storage } from "../../../platform/storage/storage.ts";
import { DueHeap } from "../../../platform/timers/due-heap.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { CellError, ObjectRefusal, Refusal } from "../../../sandbox/errors.ts";
import type { ActingObject } from "../../../sandbox/objects/standing.ts";
import type { AlarmCall, AlarmNotice, AlarmOutcome } from "../../../sandbox/protocol.ts";
import { AlarmLine } from "./alarm-line.ts";
import { loadAlarms, type ActingOrigin, type RightTo } from "./alarm-store.ts";
import { AlarmWrites } from "./alarm-writes.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { runAt } from "../../../platform/timers/run-at.ts";
import { earliest } from "../../../platform/timers/earliest.ts";

/** Maximum number of attempts after the first one, as in the public service. */
export const retriesMax = 6;
const firstRetryMs = 2000;
/** The longest delay between attempts is 2 s × 2⁹, plus jitter. */
const doublingsMax = 9;
const jitter = 0.25;
const dueAtOnceMax = 1000;

/** Time until the next attempt after a number of failed ones; `random` is in [0, 1). */
export const retryDelayMs = (failed: number, firstMs = firstRetryMs, random = Math.random()): number =>
  firstMs * 2 ** Math.min(failed - 1, doublingsMax) * (1 + jitter * random);

interface Alarm extends ActingObject {
  readonly key: string;
  /** Milliseconds since 1970; Infinity for none. */
  due: number;
  /** The stored time, for a restart: never later than `due`, or an object would be asked too late. */
  storedDue: number;
  /** Failed attempts that count against the limit, and all failed ones: faults of the platform do not count. */
  retries: number;
  failures: number;
  origin: ActingOrigin;
  /** The last notice; see AlarmNotice. */
  instance: number;
  number: number;
  state: "set" | "queued" | "running";
  /** The line in which a queued alarm waits. */
  line: AlarmLine<Alarm> | undefined;
}

/** Runs alarms in the cells of objects. */
export interface AlarmRunner {
  /** The owner of the cells of a namespace; undefined for a namespace without objects of scripts. */
  ownerOf(namespace: string): string | undefined;
  /** The data of an object's next run, as far as it is known. */
  originOf(object: ActingObject, notice: AlarmNotice): ActingOrigin;
  run(object: ActingObject, call: AlarmCall, origin: ActingOrigin): Promise<AlarmOutcome>;
}

/**
 * Runs the alarms of objects. The alarm itself is stored in its object, as part of the object's transactions. This class
 * knows only when to ask each object, in memory and in a table that it reads after a restart.
 */
export class Alarms {
  readonly #storage: Storage;
  readonly #runner: AlarmRunner;
  readonly #logger: Logger;
  readonly #writes: AlarmWrites;
  readonly #alarms = new Map<string, Alarm>();
  #heap = new DueHeap<Alarm>();
  readonly #lines = new Map<string, AlarmLine<Alarm>>();
  #timer: { due: number; cancel: () => void } | undefined;
  #isRunning = false;
  /** Changed by tests only. */
  firstRetryMs = firstRetryMs;
  /** Alarms that ran, and attempts that failed. */
  readonly counts = { ran: 0, failed: 0 };
  /** Called with the lateness of each first attempt, and the namespace. */
  onRun: (lateMs: number, namespace: string) => void = () => {};

  /** `rightTo`: of nodes that share the objects. */
  constructor(storage: Storage, runner: AlarmRunner, logger: Logger, rightTo?: RightTo) {
    this.#storage = storage;
    this.#runner = runner;
    this.#logger = logger;
    this.#writes = new AlarmWrites(storage, logger, rightTo);
  }

  get size(): number {
    return this.#alarms.size;
  }

  /** Reads the alarms of namespaces from the table. */
  async load(isIn: (namespace: string) => boolean = () => true): Promise<void> {
    for (const { namespace, id, due, retries, origin } of await loadAlarms(this.#storage)) {
      if (!isIn(namespace) || this.#alarms.has(keyOf({ namespace, id }))) continue;
      const alarm = this.#add({ namespace, id });
      Object.assign(alarm, { due, storedDue: due, retries, failures: retries, origin });
      this.#heap.push(due, alarm);
    }
    this.#set();
  }

  /** Stores what is not stored yet. */
  async store(): Promise<void> {
    await this.#writes.write();
  }

  /** Forgets the alarms of namespaces, which another node runs. Their rows stay. */
  drop(isIn: (namespace: string) => boolean): void {
    this.#writes.clear(isIn);
    for (const alarm of [...this.#alarms.values()]) {
      if (!isIn(alarm.namespace)) continue;
      leaveLine(alarm);
      this.#alarms.delete(alarm.key);
    }
  }

  /** Drops all alarms in memory, and reads the table again. */
  async reset(): Promise<void> {
    for (const alarm of this.#alarms.values()) leaveLine(alarm);
    this.#alarms.clear();
    this.#writes.clear();
    this.#heap = new DueHeap();
    await this.load();
    this.#set();
  }

  /** When the next alarm is due; undefined if none is set. */
  get nextOn(): number | undefined {
    const known = [...this.#alarms.values()];
    return earliest(known.map(({ state, due }) => (state === "set" && due !== Infinity ? due : undefined)));
  }

  /** The alarms that are due, and wait for their turn or run. */
  get inFlight(): number {
    return [...this.#alarms.values()].filter(({ state }) => state !== "set").length;
  }

  /** Starts the alarms that are due now. */
  look(): readonly ActingObject[] {
    return this.#fire().map(({ namespace, id }) => ({ namespace, id }));
  }

  /** Starts to run alarms. Returns a function that stops it and writes the pending changes. */
  start(): () => Promise<void> {
    this.#isRunning = true;
    this.#set();
    return async () => {
      this.#isRunning = false;
      this.#timer?.cancel();
      this.#timer = undefined;
      await this.#writes.write();
    };
  }

  /** Records that an object has set or deleted its alarm. Resolves when the time is durable; rejects if it cannot be. */
  async note(object: ActingObject, notice: AlarmNotice): Promise<void> {
    if (this.#runner.ownerOf(object.namespace) === undefined)
      throw new Refusal("The namespace of Durable Objects does not exist any more.");
    const known = this.#alarms.get(keyOf(object));
    if (known === undefined && notice.due === null) return;
    const alarm = known ?? this.#add(object);
    if (isOlder(notice, alarm)) return;
    alarm.origin = this.#runner.originOf(object, notice);
    this.#adopt(alarm, notice);
    if (alarm.due >= alarm.storedDue) return;
    this.#store(alarm);
    await this.#writes.write(object.namespace);
  }

  /** Asks an object for its alarm now, after its data was replaced. The platform's own objects have no alarms. */
  ask(object: ActingObject): void {
    if (this.#runner.ownerOf(object.namespace) === undefined) return;
    const alarm = this.#alarms.get(keyOf(object)) ?? this.#add(object);
    this.#reset(alarm, clock.now());
    this.#store(alarm);
  }

  /** Forgets the alarms of a deleted namespace, or of one of its objects, also while they run. Deletes their rows soon. */
  forget(namespace: string, id?: string): void {
    for (const alarm of id === undefined
      ? [...this.#alarms.values()]
      : [this.#alarms.get(keyOf({ namespace, id }))]) {
      if (alarm?.namespace !== namespace) continue;
      alarm.due = Infinity;
      this.#delete(alarm);
    }
  }

  #add(object: ActingObject): Alarm {
    const alarm: Alarm = {
      ...object,
      key: keyOf(object),
      due: Infinity,
      storedDue: Infinity,
      retries: 0,
      failures: 0,
      origin: {},
      instance: -1,
      number: 0,
      state: "set",
      line: undefined,
    };
    this.#alarms.set(alarm.key, alarm);
    return alarm;
  }

  #adopt(alarm: Alarm, { due, instance, number }: AlarmNotice): void {
    Object.assign(alarm, { instance, number });
    this.#reset(alarm, due ?? Infinity);
    if (due === null) this.#remove(alarm);
  }

  /** Sets the time of an alarm that has not been tried. */
  #reset(alarm: Alarm, due: number): void {
    Object.assign(alarm, { retries: 0, failures: 0 });
    this.#arm(alarm, due);
  }

  #arm(alarm: Alarm, at: number): void {
    const due = Math.ceil(at); // PostgreSQL refuses fractions, and with them all alarms that are written together
    alarm.due = due;
    leaveLine(alarm);
    if (alarm.state !== "running") alarm.state = "set";
    if (due === Infinity || alarm.state === "running") return;
    // Times that were replaced stay in the heap until they are due.
    if (this.#heap.size > 2 * this.#alarms.size + dueAtOnceMax) this.#clean();
    this.#heap.push(due, alarm);
    this.#set();
  }

  #clean(): void {
    this.#heap = new DueHeap();
    for (const alarm of this.#alarms.values())
      if (alarm.due !== Infinity && alarm.state === "set") this.#heap.push(alarm.due, alarm);
  }

  /** Keeps running alarms, so that their outcomes are compared with later notices. */
  #remove(alarm: Alarm): void {
    if (alarm.state !== "running") this.#delete(alarm);
  }

  #delete(alarm: Alarm): void {
    leaveLine(alarm);
    this.#alarms.delete(alarm.key);
    this.#store(alarm);
  }

  #store(alarm: Alarm): void {
    const { namespace, id, due, retries, origin, storedDue } = alarm;
    alarm.storedDue = due;
    if (due !== Infinity) this.#writes.note(namespace, id, { namespace, id, due, retries, origin });
    else if (storedDue !== Infinity) this.#writes.note(namespace, id, undefined);
  }

  #set(): void {
    const due = this.#heap.next?.due;
    if (due === undefined || !this.#isRunning) return;
    if (this.#timer !== undefined) {
      if (this.#timer.due <= due) return;
      this.#timer.cancel();
    }
    this.#timer = { due, cancel: runAt(due, () => this.#fire()) };
  }

  #fire(): Alarm[] {
    this.#timer?.cancel();
    this.#timer = undefined;
    const queued: Alarm[] = [];
    const now = clock.now();
    const owners = new Set<string>();
    for (const alarm of this.#heap.take(now, dueAtOnceMax)) {
      if (this.#alarms.get(alarm.key) !== alarm || alarm.state !== "set" || alarm.due > now) continue;
      const owner = this.#runner.ownerOf(alarm.namespace);
      if (owner === undefined) continue; // `forget` follows
      owners.add(owner);
      alarm.state = "queued";
      queued.push(alarm);
      let line = this.#lines.get(owner);
      if (line === undefined) this.#lines.set(owner, (line = new AlarmLine()));
      line.add(alarm);
      alarm.line = line;
    }
    for (const owner of owners) this.#pump(owner);
    this.#set();
    return queued;
  }

  #pump(owner: string): void {
    const line = this.#lines.get(owner)!;
    while (this.#isRunning) {
      const alarm = line.take();
      if (alarm === undefined) break;
      alarm.line = undefined;
      unawaited(
        this.#try(alarm).finally(() => {
          line.end(alarm);
          this.#pump(owner);
        }),
      );
    }
    if (line.isEmpty) this.#lines.delete(owner);
  }

  async #try(alarm: Alarm): Promise<void> {
    const { due, retries, origin, number, instance } = alarm;
    alarm.state = "running";
    if (alarm.failures === 0) this.onRun(clock.now() - due, alarm.namespace);
    const order = retries > retriesMax ? "drop" : retries === retriesMax ? "last" : "run";
    let outcome: AlarmOutcome | undefined;
    let error: unknown;
    try {
      outcome = await this.#runner.run(alarm, { retryCount: retries, order, now: clock.now() }, origin);
    } catch (thrown) {
      error = thrown;
    }
    alarm.state = "set";
    if (this.#alarms.get(alarm.key) !== alarm || !this.#isRunning) return;
    const isNoted = alarm.instance !== instance || alarm.number !== number;
    if (outcome === undefined) {
      this.#logger.debug(
        { err: error, namespace: alarm.namespace, object: alarm.id },
        "an alarm of a Durable Object failed",
      );
      if (isNoted) this.#arm(alarm, alarm.due);
      else this.#failed(alarm, countsAsFailed(error));
    } else if (isOlder(outcome, alarm)) this.#arm(alarm, alarm.due);
    else this.#ended(alarm, outcome);
    if (alarm.due === Infinity) this.#remove(alarm);
    else if (alarm.due !== alarm.storedDue) this.#store(alarm);
  }

  #ended(alarm: Alarm, notice: AlarmOutcome): void {
    const { outcome, instance, number, due } = notice;
    Object.assign(alarm, { instance, number });
    if (outcome === "done") this.counts.ran++;
    if (outcome === "failed") this.#failed(alarm, true);
    else this.#reset(alarm, due ?? Infinity);
  }

  #failed(alarm: Alarm, counts: boolean): void {
    this.counts.failed++;
    alarm.failures++;
    if (counts) alarm.retries++;
    const delayMs = alarm.retries > retriesMax ? 0 : retryDelayMs(alarm.failures, this.firstRetryMs);
    this.#arm(alarm, clock.now() + delayMs);
  }
}

const keyOf = ({ namespace, id }: ActingObject): string => `${namespace} ${id}`;

const leaveLine = (alarm: Alarm): void => {
  alarm.line?.delete(alarm);
  alarm.line = undefined;
};

const isOlder = (notice: AlarmNotice, { instance, number }: Alarm): boolean =>
  notice.instance === instance && notice.number < number;

/** Whether the object is to blame: it exceeded a limit, or its constructor threw. */
const countsAsFailed = (error: unknown): boolean =>
  error instanceof CellError
    ? error.kind === "exception"
    : error instanceof ObjectRefusal && error.flags.length === 0;
