import { unawaited } from "../../platform/util/uncaught.ts";

/** A round has units: a frame costs one unit, and one more for so many bytes. */
export const bytesPerUnit = 1024;
const roundUnits = 4096;
/** Of one account: at first, and when its frames take much or little CPU time of the cell. */
const accountUnits = 64;
const accountUnitsMin = 4;
const accountUnitsMax = 2048;
/** Of one connection, before another one of its account has its turn. */
export const turnUnits = 64;
/** CPU time of a cell for one round above which accounts that use their part get less, and below which they get more. */
const slowRoundMs = 50;
const fastRoundMs = 10;

interface Account {
  units: number;
  /** In this round. Negative after a part that cost more than was left. */
  left: number;
  /** Connections that wait, in order. */
  waiting: (() => void)[];
}

/** A cell that can be asked and measured. */
export interface PacedCell {
  /** Resolves when the cell's thread is free to answer. */
  ping(): Promise<unknown>;
  cpuMs(): number;
}

/**
 * Decides when frames of WebSockets are passed to a cell. A cell that finds more frames each time it has read some reads
 * nothing else: a visitor who sends without a pause stops all others in it. So frames pass in rounds. When a round is used
 * up, the next one begins as soon as the cell has answered a ping, which it reads only when it has read those frames.
 * Accounts have equal parts of a round, and their connections take turns. Nothing is stored: senders have to wait.
 */
export class FramePace {
  readonly #cell: PacedCell;
  readonly #accounts = new Map<string, Account>();
  #left = roundUnits;
  #isAsking = false;

  constructor(cell: PacedCell) {
    this.#cell = cell;
  }

  /** Whether a connection of an account may pass something now. */
  hasRoom(accountId: string): boolean {
    return this.#left > 0 && this.#of(accountId).left > 0;
  }

  isAwaited(accountId: string): boolean {
    return this.#of(accountId).waiting.length > 0;
  }

  spend(accountId: string, units: number): void {
    this.#left -= units;
    this.#of(accountId).left -= units;
  }

  /** Calls back when it is the connection's turn, which may then pass `turnUnits`. */
  wait(accountId: string, turn: () => void): void {
    this.#of(accountId).waiting.push(turn);
    if (!this.#isAsking) unawaited(this.#goOn());
  }

  /** Begins rounds until no connection waits. */
  async #goOn(): Promise<void> {
    this.#isAsking = true;
    for (let mustGoOn = true; mustGoOn;) {
      const beganAtMs = this.#cell.cpuMs();
      await this.#cell.ping().catch(() => {}); // the cell has ended, and writes to it fail
      this.#refill(this.#cell.cpuMs() - beganAtMs);
      mustGoOn = this.#serve();
    }
    this.#isAsking = false;
  }

  #refill(usedMs: number): void {
    this.#left = roundUnits;
    const waiting = [...this.#accounts.values()].filter((account) => account.waiting.length > 0);
    const part = Math.ceil(roundUnits / Math.max(1, waiting.length));
    for (const [id, account] of this.#accounts) {
      const isUsed = account.left <= 0;
      if (isUsed && usedMs > slowRoundMs) account.units = Math.max(accountUnitsMin, account.units / 2);
      else if (usedMs < fastRoundMs && (isUsed || account.units < accountUnits))
        account.units = Math.min(accountUnitsMax, account.units * 2);
      account.left = Math.min(part, account.units, account.left + account.units);
      if (!isUsed && account.units >= accountUnits && account.waiting.length === 0) this.#accounts.delete(id);
    }
  }

  /** Gives turns. Returns whether connections still wait. */
  #serve(): boolean {
    let isWaiting = false;
    for (const [id, account] of [...this.#accounts]) {
      if (account.waiting.length === 0) continue;
      if (this.hasRoom(id)) {
        while (this.hasRoom(id) && account.waiting.length > 0) account.waiting.shift()!();
        // Accounts without a turn are the first ones in the next round.
        this.#accounts.delete(id);
        this.#accounts.set(id, account);
      }
      if (account.waiting.length > 0) isWaiting = true;
    }
    return isWaiting;
  }

  #of(accountId: string): Account {
    let account = this.#accounts.get(accountId);
    if (account === undefined) {
      account = { units: accountUnits, left: accountUnits, waiting: [] };
      this.#accounts.set(accountId, account);
    }
    return account;
  }
}
