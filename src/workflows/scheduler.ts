/** What the scheduler needs to know of an instance. */
export interface Queued {
  rid: number;
  accountId: string;
  workflowRid: number;
  /** A cell died under it: until it gets on, nothing else of its kind runs beside it. */
  isSuspect: boolean;
}

interface Account {
  running: number;
  woken: Map<number, Queued>;
  /** By workflow, in turns, so that one busy workflow does not starve the others. */
  fresh: Map<number, Map<number, Queued>>;
}

/**
 * Concurrency slots. An account has so many; instances that were woken take them before those that never ran, and
 * those in the order of their creation. Suspects have one slot on the whole node.
 */
export class Scheduler {
  readonly #limit: number;
  readonly #start: (rid: number) => void;
  readonly #accounts = new Map<string, Account>();
  readonly #holders = new Map<number, Queued>();
  readonly #suspects = new Map<number, Queued>();
  #suspect: number | undefined;
  #queued = 0;

  constructor(limit: number, start: (rid: number) => void) {
    this.#limit = limit;
    this.#start = start;
  }

  get queuedCount(): number {
    return this.#queued;
  }
  get runningCount(): number {
    return this.#holders.size;
  }

  enqueue(instance: Queued, from: "woken" | "fresh"): void {
    const account = this.#account(instance.accountId);
    this.#queued++;
    if (instance.isSuspect) this.#suspects.set(instance.rid, instance);
    else if (from === "woken") account.woken.set(instance.rid, instance);
    else {
      let queue = account.fresh.get(instance.workflowRid);
      if (queue === undefined) account.fresh.set(instance.workflowRid, (queue = new Map()));
      queue.set(instance.rid, instance);
    }
    this.#pump(account);
  }

  /** Takes an instance out of the queue, or its slot away. */
  leave(rid: number, accountId: string, workflowRid: number): void {
    const account = this.#account(accountId);
    const fresh = account.fresh.get(workflowRid);
    if (this.#suspects.delete(rid) || account.woken.delete(rid) || fresh?.delete(rid) === true) {
      this.#queued--;
      if (fresh?.size === 0) account.fresh.delete(workflowRid);
    }
    if (this.#holders.delete(rid)) account.running--;
    this.cleared(rid);
    this.#pump(account);
  }

  /** An instance got on: it is no suspect any more, and the next one may have its place. */
  cleared(rid: number): void {
    if (this.#suspect !== rid) return;
    this.#suspect = undefined;
    const [next] = this.#suspects.values();
    if (next !== undefined) this.#pump(this.#account(next.accountId));
  }

  #account(id: string): Account {
    let account = this.#accounts.get(id);
    if (account === undefined)
      this.#accounts.set(id, (account = { running: 0, woken: new Map(), fresh: new Map() }));
    return account;
  }

  #pump(account: Account): void {
    while (account.running < this.#limit) {
      const next = this.#next(account);
      if (next === undefined) return;
      this.#queued--;
      account.running++;
      this.#holders.set(next.rid, next);
      this.#start(next.rid);
    }
  }

  #next(account: Account): Queued | undefined {
    if (this.#suspect === undefined) {
      for (const suspect of this.#suspects.values()) {
        if (this.#account(suspect.accountId) !== account) continue;
        this.#suspects.delete(suspect.rid);
        this.#suspect = suspect.rid;
        return suspect;
      }
    }
    for (const woken of account.woken.values()) {
      account.woken.delete(woken.rid);
      return woken;
    }
    for (const [workflowRid, queue] of account.fresh) {
      const [first] = queue.values();
      // To the end of the turns.
      account.fresh.delete(workflowRid);
      if (first === undefined) continue;
      queue.delete(first.rid);
      if (queue.size > 0) account.fresh.set(workflowRid, queue);
      return first;
    }
    return undefined;
  }
}
