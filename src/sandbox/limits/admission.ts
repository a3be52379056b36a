/**
 * The kinds of run: a visitor's request, an event (a queue, a schedule), or a call from another script. Calls
 * wait only for slots of other accounts: callers hold slots themselves, so calls that waited for slots of
 * their own account could deadlock.
 */
export type Kind = "request" | "event" | "call";

export interface RunAdmissionLimits {
  /** Slots of all accounts together. As with one account, calls may take the same number again. */
  capacity: number;
  /**
   * Slots of one account. Events take at most half of them. Calls may take the same number again, so that
   * admitted requests can finish.
   */
  accountMax: number;
  /** A script gets at most this multiple of the slots that it leaves free in its account. */
  scriptShare: number;
  /** Maximum numbers of waiting requests, of one account and of all; by default the numbers of slots. */
  accountWaitingMax?: number;
  waitingMax?: number;
  /** Time after which a waiting request is refused. */
  waitMs: number;
  /** Time after which a waiting request evicts a run of the account or script with the most slots. */
  patienceMs: number;
}

/** Number of entries above which idle ones are dropped. */
const knownMax = 2000;

/** The connection that a slot is for: closing it ends the wait. */
export interface WaitingClient {
  once(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
}

type Waited = "admitted" | "refused" | "left";
type End = (waited: Waited) => void;

interface Account {
  shares: Record<Kind, Map<string, ScriptSlots>>;
  inFlight: number;
  events: number;
  waiting: number;
  /** Number of shares with runs or waiters. */
  activeCount: number;
  /** Shares with waiters, in round-robin order. */
  turns: Set<ScriptSlots>;
}

/** The slots of one script for one kind of run. */
export interface ScriptSlots {
  readonly account: Account;
  readonly kind: Kind;
  inFlight: number;
  waiting: number;
  /** Waiters by queue key, in round-robin order. */
  readonly queues: Map<string, End[]>;
}

/**
 * Distributes a bounded number of slots fairly: among accounts, and within an account among its scripts.
 *
 * An account gets at most as many slots as it leaves free, so there is always room for one more account,
 * however greedy the others are (dynamic thresholds of shared packet buffers: Choudhury and Hahne, 1998).
 * Requests without a slot wait in round-robin order: by account, within an account by script, and within a
 * script by queue key, which separates a dispatcher's customers. A request that has waited for `patienceMs`,
 * and whose account or script has less than an equal part, evicts a run of the account or script with the
 * most slots.
 */
export class RunAdmission {
  readonly #limits: RunAdmissionLimits;
  readonly #evict: (share: ScriptSlots) => boolean;
  readonly #accounts = new Map<string, Account>();
  /** Accounts with waiters, in round-robin order. */
  readonly #turns = new Set<Account>();
  #inFlight = 0;
  #calls = 0;
  #waiting = 0;
  /** Number of accounts with runs or waiters. */
  #activeCount = 0;

  /** `evict` ends the oldest run of a share, which then leaves soon. Returns false if no run can be ended. */
  constructor(limits: RunAdmissionLimits, evict: (share: ScriptSlots) => boolean = () => false) {
    this.#limits = limits;
    this.#evict = evict;
  }

  get inFlight(): number {
    return this.#inFlight;
  }
  get waiting(): number {
    return this.#waiting;
  }

  of(accountId: string, owner: string, kind: Kind): ScriptSlots {
    let account = this.#accounts.get(accountId);
    if (account === undefined) {
      dropIdle(this.#accounts, ({ activeCount }) => activeCount === 0);
      this.#accounts.set(accountId, (account = newAccount()));
    }
    const shares = account.shares[kind];
    let share = shares.get(owner);
    if (share === undefined) {
      dropIdle(shares, isIdle);
      shares.set(owner, (share = { account, kind, inFlight: 0, waiting: 0, queues: new Map() }));
    }
    return share;
  }

  /** Takes a slot if one is free. Each `enter` that returned true needs one `leave`. */
  enter(share: ScriptSlots): boolean {
    const isAdmitted =
      share.waiting === 0 && (this.#hasRoom(share) || (share.kind === "call" && this.#takeFromOthers(share)));
    if (isAdmitted) this.#take(share);
    return isAdmitted;
  }

  leave(share: ScriptSlots): void {
    const { account } = share;
    share.inFlight--;
    account.inFlight--;
    if (share.kind === "event") account.events--;
    if (share.kind === "call") this.#calls--;
    this.#inFlight--;
    this.#settle(share);
    if (this.#waiting > 0) this.#admitWaiting();
  }

  /**
   * Waits for a slot after `enter` returned false, until the time is over or the client closes. If too many
   * requests wait, the latest one is refused: in the script with the most waiters, in its longest queue.
   */
  async wait(share: ScriptSlots, client: WaitingClient, queue = ""): Promise<Waited> {
    if (share.kind === "call" && !this.#isWithinItsPart(share)) return "refused";
    const { account, queues } = share;
    const { capacity, accountMax, waitMs, patienceMs } = this.#limits;
    const { accountWaitingMax = accountMax, waitingMax = capacity } = this.#limits;
    const { promise, resolve } = Promise.withResolvers<Waited>();
    const until = performance.now() + waitMs;
    const timer = setInterval(() => {
      if (performance.now() >= until) end("refused");
      else if (this.#takeFromOthers(share)) {
        this.#take(share);
        end("admitted");
      }
    }, patienceMs);
    const end = (waited: Waited): void => {
      clearInterval(timer);
      client.off("close", leave);
      const ends = queues.get(queue)!;
      ends.splice(ends.indexOf(end), 1);
      if (ends.length === 0) queues.delete(queue);
      share.waiting--;
      account.waiting--;
      this.#waiting--;
      if (share.waiting === 0) account.turns.delete(share);
      if (account.turns.size === 0) this.#turns.delete(account);
      this.#settle(share);
      resolve(waited);
    };
    const leave = (): void => end("left");
    client.once("close", leave);
    this.#begin(share);
    const ends = queues.get(queue);
    if (ends === undefined) queues.set(queue, [end]);
    else ends.push(end);
    share.waiting++;
    account.waiting++;
    this.#waiting++;
    account.turns.add(share);
    this.#turns.add(account);
    if (account.waiting > accountWaitingMax) refuseLatest(account);
    else if (this.#waiting > waitingMax) refuseLatest(most(this.#turns, ({ waiting }) => waiting));
    return promise;
  }

  /**
   * Runs `work` with a slot, after waiting for one if necessary. Does not run it if the wait was refused or
   * the client left.
   */
  async within(share: ScriptSlots, client: WaitingClient, work: () => Promise<void>): Promise<Waited> {
    const waited = this.enter(share) ? "admitted" : await this.wait(share, client);
    if (waited !== "admitted") return waited;
    try {
      await work();
    } finally {
      this.leave(share);
    }
    return waited;
  }

  /** Refuses all waiters. */
  close(): void {
    for (const { turns } of this.#turns)
      for (const { queues } of turns) for (const end of [...queues.values()].flat()) end("refused");
  }

  #hasRoom(share: ScriptSlots): boolean {
    return share.account.inFlight < this.#freeFor(share.kind) && this.#leavesRoom(share);
  }

  /** Number of slots that are free for all accounts. */
  #freeFor(kind: Kind): number {
    const { capacity } = this.#limits;
    return kind === "call" ? capacity * 2 - this.#inFlight : capacity - (this.#inFlight - this.#calls);
  }

  /** Whether the account and the script are below their limits, as if all other slots were free. */
  #leavesRoom({ account, kind, inFlight }: ScriptSlots): boolean {
    const max = this.#maxOf(kind);
    return (
      account.inFlight < max &&
      inFlight < this.#limits.scriptShare * (max - account.inFlight) &&
      (kind !== "event" || account.events < max / 2)
    );
  }

  /** Whether other accounts, and not its own, keep this share from a slot. */
  #isWithinItsPart(share: ScriptSlots): boolean {
    return share.account.inFlight < this.#partOf(share.kind) && this.#leavesRoom(share);
  }

  #partOf(kind: Kind): number {
    const { capacity } = this.#limits;
    return equalPart(kind === "call" ? capacity * 2 : capacity, this.#activeCount);
  }

  #maxOf(kind: Kind): number {
    const { accountMax } = this.#limits;
    return kind === "call" ? accountMax * 2 : accountMax;
  }

  /** Evicts a run of a richer account or script, if this share has less than an equal part. */
  #takeFromOthers({ account, kind, inFlight }: ScriptSlots): boolean {
    if (account.inFlight >= this.#maxOf(kind)) {
      const part = equalPart(this.#limits.accountMax, account.activeCount);
      return kind === "request" && inFlight < part && this.#takeFrom(account, part);
    }
    const part = this.#partOf(kind);
    if (account.inFlight < this.#freeFor(kind) || account.inFlight >= part) return false;
    return richerThan(part, this.#accounts.values()).some((richer) => this.#takeFrom(richer, 0));
  }

  #takeFrom({ shares }: Account, part: number): boolean {
    const all = Object.values(shares).flatMap((each) => [...each.values()]);
    return richerThan(part, all).some(this.#evict);
  }

  #take(share: ScriptSlots): void {
    const { account } = share;
    this.#begin(share);
    share.inFlight++;
    account.inFlight++;
    if (share.kind === "event") account.events++;
    if (share.kind === "call") this.#calls++;
    this.#inFlight++;
  }

  #begin(share: ScriptSlots): void {
    if (isIdle(share) && ++share.account.activeCount === 1) this.#activeCount++;
  }

  #settle(share: ScriptSlots): void {
    if (isIdle(share) && --share.account.activeCount === 0) this.#activeCount--;
  }

  #admitWaiting(): void {
    // Each account goes to the end after its turn, and gets another turn while there is room.
    for (const account of this.#turns) {
      const share = [...account.turns].find((each) => this.#hasRoom(each));
      if (share === undefined) continue;
      this.#take(share);
      const [queue, [end]] = share.queues.entries().next().value!;
      end!("admitted");
      const ends = share.queues.get(queue);
      if (ends !== undefined && share.queues.delete(queue)) share.queues.set(queue, ends);
      if (account.turns.delete(share)) account.turns.add(share);
      if (this.#turns.delete(account)) this.#turns.add(account);
    }
  }
}

const newAccount = (): Account => ({
  shares: { event: new Map(), request: new Map(), call: new Map() },
  inFlight: 0,
  events: 0,
  waiting: 0,
  activeCount: 0,
  turns: new Set(),
});

const equalPart = (slots: number, count: number): number =>
  Math.max(1, Math.floor(slots / Math.max(1, count)));

function refuseLatest({ turns }: Account): void {
  const { queues } = most(turns, ({ waiting }) => waiting);
  most(queues.values(), ({ length }) => length).at(-1)!("refused");
}

const isIdle = ({ inFlight, waiting }: ScriptSlots): boolean => inFlight === 0 && waiting === 0;

function dropIdle<T>(known: Map<string, T>, isUnused: (each: T) => boolean): void {
  if (known.size < knownMax) return;
  for (const [key, each] of known) if (isUnused(each)) known.delete(key);
}

/** The first element with the highest count; `all` must not be empty. */
function most<T>(all: Iterable<T>, count: (each: T) => number): T {
  let [best, bestCount] = [undefined as T | undefined, -1];
  for (const each of all) if (count(each) > bestCount) [best, bestCount] = [each, count(each)];
  return best!;
}

/** Elements with more than `part` in flight, the richest first. */
const richerThan = <T extends { inFlight: number }>(part: number, all: Iterable<T>): T[] =>
  [...all].filter(({ inFlight }) => inFlight > part).toSorted((a, b) => b.inFlight - a.inFlight);
