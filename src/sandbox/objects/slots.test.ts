import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Slots, type SlotOwner } from "./slots.ts";

/** Slots with cells that end when the test says so. */
class Bench {
  readonly idle = new Map<number, number>();
  readonly ended: number[] = [];
  readonly #gone = new Map<number, () => void>();
  readonly slots: Slots;

  constructor(objectCellsMax = 16) {
    const limits = { objectCellsMax, objectAccountShare: 0.25, objectWaitMs: 5000, patienceMs: 1000 };
    this.slots = new Slots(limits, {
      idleSince: (slot) => this.idle.get(slot),
      isOpen: () => true,
      end: (slot) => this.end(slot),
    });
  }

  end(slot: number): void {
    this.ended.push(slot);
    this.idle.delete(slot);
    this.slots.ending(slot, new Promise((resolve) => this.#gone.set(slot, resolve)));
  }

  /** The process of a slot is gone. */
  async gone(slot: number): Promise<void> {
    this.#gone.get(slot)!();
    await vi.advanceTimersByTimeAsync(0);
  }

  async claimAll(accounts: readonly string[], each: number): Promise<void> {
    for (const account of accounts)
      for (let i = 0; i < each; i++) await this.slots.claim(i < 3 ? objects(account) : databases(account));
  }
}
const objects = (accountId: string): SlotOwner => ({ accountId, isPlatform: false });
const databases = (accountId: string): SlotOwner => ({ accountId, isPlatform: true });

/** How a claim ends, or "waits". */
function outcome(claim: Promise<number>): { is: number | string; flags?: readonly string[] } {
  const result: { is: number | string; flags?: readonly string[] } = { is: "waits" };
  claim.then(
    (slot) => (result.is = slot),
    (error: Error & { flags: readonly string[] }) =>
      Object.assign(result, { is: error.message, flags: error.flags }),
  );
  return result;
}

const tooLong = {
  is: "Durable Object is overloaded. Requests queued for too long.",
  flags: ["overloaded"],
};
const noSlot = {
  is: "Cannot resolve Durable Object due to transient issue on remote node.",
  flags: ["retryable"],
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("an account gets its share, whose last slot is for its databases, and no more", async () => {
  const bench = new Bench();
  expect(await Promise.all([1, 2, 3].map(async () => bench.slots.claim(objects("greedy"))))).toEqual([
    0, 1, 2,
  ]);
  const fourth = outcome(bench.slots.claim(objects("greedy")));
  expect(await bench.slots.claim(databases("greedy"))).toBe(3);
  const fifth = outcome(bench.slots.claim(databases("greedy")));
  expect(await bench.slots.claim(objects("victim"))).toBe(4);
  bench.idle.set(4, 1);
  bench.slots.retry();
  await vi.advanceTimersByTimeAsync(4999);
  expect([fourth.is, fifth.is]).toEqual(["waits", "waits"]);
  await vi.advanceTimersByTimeAsync(1);
  expect([fourth, fifth]).toEqual([tooLong, tooLong]);
  expect(bench.ended).toEqual([]);
});

it("there is room for other work of an account while a slot is free, and no cell of it waits", async () => {
  const bench = new Bench(5);
  expect(bench.slots.hasRoomFor("a")).toBe(true);
  await bench.claimAll(["a"], 1);
  expect([bench.slots.hasRoomFor("a"), bench.slots.hasRoomFor("b")]).toEqual([true, true]);
  const second = outcome(bench.slots.claim(objects("a")));
  expect([bench.slots.hasRoomFor("a"), bench.slots.hasRoomFor("b")]).toEqual([false, true]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(second).toEqual(tooLong);
  expect(bench.slots.hasRoomFor("a")).toBe(true);
  await bench.claimAll(["b", "c", "d", "e"], 1);
  expect(bench.slots.hasRoomFor("a")).toBe(false);
});

it("an account with its share ends its own cell that was idle longest, and gets the slot when the process is gone", async () => {
  const bench = new Bench();
  await bench.claimAll(["a", "b"], 4);
  for (const [slot, since] of [[1, 30], [2, 20], [5, 10], [3, 5]] as const) bench.idle.set(slot, since); // prettier-ignore
  const claim = outcome(bench.slots.claim(objects("a")));
  const next = outcome(bench.slots.claim(objects("a")));
  await vi.advanceTimersByTimeAsync(0);
  expect([bench.ended, claim.is, next.is]).toEqual([[2, 1], "waits", "waits"]);
  await bench.gone(2);
  expect([claim.is, next.is]).toEqual([2, "waits"]);
  await bench.gone(1);
  expect(next.is).toBe(1);
  const database = outcome(bench.slots.claim(databases("a")));
  await bench.gone(3);
  expect([database.is, bench.ended]).toEqual([3, [2, 1, 3]]);
});

it("when all slots are in use, an idle cell makes room; without one the caller waits for it", async () => {
  const bench = new Bench(2);
  await bench.claimAll(["a", "b"], 1);
  const late = outcome(bench.slots.claim(objects("late")));
  const refused = outcome(bench.slots.claim(objects("other")));
  await vi.advanceTimersByTimeAsync(3000);
  bench.idle.set(1, 1);
  bench.slots.retry();
  await bench.gone(1);
  expect([late.is, refused.is]).toEqual([1, "waits"]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(refused).toEqual(noSlot);
});

it("an account without a cell takes a busy cell of an account with several, but none of databases, and only one", async () => {
  const bench = new Bench();
  await bench.claimAll(["a", "b", "c", "d"], 4);
  const late = outcome(bench.slots.claim(objects("late")));
  await vi.advanceTimersByTimeAsync(999);
  expect(bench.ended).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(bench.ended).toEqual([2]);
  const own = outcome(bench.slots.claim(objects("a")));
  await bench.gone(2);
  expect(late.is).toBe(2);
  const second = outcome(bench.slots.claim(objects("late")));
  await vi.advanceTimersByTimeAsync(5000);
  expect([bench.ended, own, second]).toEqual([[2], noSlot, noSlot]);
});

it("a slot is free after its cell has ended or has not started", async () => {
  const bench = new Bench(1);
  expect(await bench.slots.claim(objects("a"))).toBe(0);
  const waiting = outcome(bench.slots.claim(objects("b")));
  bench.slots.free(0);
  await vi.advanceTimersByTimeAsync(0);
  expect(waiting.is).toBe(0);
  bench.end(0);
  await bench.gone(0);
  expect(await bench.slots.claim(databases("a"))).toBe(0);
});

it("waiters are refused at close, and new ones above their maximum number", async () => {
  const bench = new Bench(1);
  await bench.slots.claim(objects("a"));
  const waiting = Array.from({ length: 100 }, () => outcome(bench.slots.claim(objects("b"))));
  await expect(bench.slots.claim(objects("b"))).rejects.toThrow("Too many requests queued.");
  bench.slots.close();
  await vi.advanceTimersByTimeAsync(0);
  expect(waiting).toEqual(waiting.map(() => noSlot));
  await expect(bench.slots.claim(objects("c"))).rejects.toThrow(noSlot.is);
});
