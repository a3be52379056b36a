/** The scheduler's view of an instance. */
export interface Queued {
  rid: number;
  accountId: string;
  workflowRid: number;
  /** A cell died under the instance. Until it progresses, no other quarantined instance runs. */
  isQuarantined: boolean;
}

interface Account {
  running: number;
  woken: Map<number, Queued>;
  /** By workflow, in turns, so that a busy workflow does not starve the others. */
  fresh: Map<number, Map<number, Queued>>;
}

/**
 * Concurrency slots, limited per account. Woken instances get slots before instances that never ran, which
 * are served in order of creation. All quarantined instances of a node share one slot.
 */
export class InstanceScheduler {
  readonly #limit: number;
  readonly #start: (rid: number) => void;
  readonly #accounts = new Map<string, Account>();
  readonly #holders = new Map<number, Queued>();
  readonly #quarantined = new Map<number, Queued>();
  #quarantinedRunning: number | undefined;
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
    if (instance.isQuarantined) this.#quarantined.set(instance.rid, instance);
    else if (from === "woken") account.woken.set(instance.rid, instance);
    else {
      let queue = account.fresh.get(instance.workflowRid);
      if (queue === undefined) account.fresh.set(instance.workflowRid, (queue = new Map()));
      queue.set(instance.rid, instance);
    }
    this.#pump(account);
  }

  /** Removes an instance from the queue, or frees its slot. */
  leave(rid: number, accountId: string, workflowRid: number): void {
    const account = this.#account(accountId);
    const fresh = account.fresh.get(workflowRid);
    if (this.#quarantined.delete(rid) || account.woken.delete(rid) || fresh?.delete(rid) === true) {
      this.#queued--;
      if (fresh?.size === 0) account.fresh.delete(workflowRid);
    }
    if (this.#holders.delete(rid)) account.running--;
    this.cleared(rid);
    this.#pump(account);
    if (account.running === 0 && account.woken.size === 0 && account.fresh.size === 0)
      this.#accounts.delete(accountId);
  }

  /** Ends the quarantine of an instance that made progress, and frees its slot. */
  cleared(rid: number): void {
    if (this.#quarantinedRunning !== rid) return;
    this.#quarantinedRunning = undefined;
    const [next] = this.#quarantined.values();
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
    if (this.#quarantinedRunning === undefined) {
      for (const instance of this.#quarantined.values()) {
        if (this.#account(instance.accountId) !== account) continue;
        this.#quarantined.delete(instance.rid);
        this.#quarantinedRunning = instance.rid;
        return instance;
      }
    }
    for (const woken of account.woken.values()) {
      account.woken.delete(woken.rid);
      return woken;
    }
    for (const [workflowRid, queue] of account.fresh) {
      const [first] = queue.values();
      // Moves the workflow to the end of the turns.
      account.fresh.delete(workflowRid);
      if (first === undefined) continue;
      queue.delete(first.rid);
      if (queue.size > 0) account.fresh.set(workflowRid, queue);
      return first;
    }
    return undefined;
  }
}
