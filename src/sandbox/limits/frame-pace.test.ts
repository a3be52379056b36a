import { expect, it } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { FramePace, turnUnits } from "./frame-pace.ts";

/** A cell that answers pings when told, and has used some CPU time for each frame. */
class Cell {
  passed = 0;
  cpu = 0;
  #answers: (() => void)[] = [];
  ping = async (): Promise<void> => new Promise((resolve) => this.#answers.push(resolve));
  cpuMs = (): number => this.cpu;

  /** Answers the ping. Returns whether there was one. */
  async answer(usedMs: number): Promise<boolean> {
    const [answer] = this.#answers.splice(0, 1);
    if (answer === undefined) return false;
    this.passed = 0;
    this.cpu += usedMs;
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    return true;
  }
}

/** A connection with frames to pass. */
class Sender {
  left: number;
  readonly #pace: FramePace;
  readonly #cell: Cell;
  readonly account: string;
  constructor(pace: FramePace, cell: Cell, account: string, frames: number) {
    this.#pace = pace;
    this.#cell = cell;
    this.account = account;
    this.left = frames;
  }

  go(): void {
    const { account } = this;
    for (let units = 0; this.left > 0 && this.#pace.hasRoom(account); units++) {
      if (units >= turnUnits && this.#pace.isAwaited(account)) break;
      this.#pace.spend(account, 1);
      this.#cell.passed++;
      this.left--;
    }
    if (this.left > 0) this.#pace.wait(account, () => this.go());
  }
}

it("passes at most 4096 frames between two pings, and all of them in the end", async () => {
  const senders = fc.array(fc.tuple(fc.nat(5), fc.nat(3000)), { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(senders, fc.array(fc.nat(200), { minLength: 1 }), async (described, times) => {
      const cell = new Cell();
      const pace = new FramePace(cell);
      const all = described.map(([account, frames]) => new Sender(pace, cell, String(account), frames));
      for (const sender of all) sender.go();
      expect(cell.passed).toBeLessThanOrEqual(4096);
      for (let round = 1; await cell.answer(times[round % times.length]!); round++)
        expect(cell.passed).toBeLessThanOrEqual(4096);
      expect(all.map(({ left }) => left)).toEqual(all.map(() => 0));
    }),
    { numRuns: 30 },
  );
});

it("gives a newcomer its part in the next round, however much others send, and each connection its turn", async () => {
  const cell = new Cell();
  const pace = new FramePace(cell);
  const greedy = Array.from({ length: 200 }, (_, i) => new Sender(pace, cell, `greedy ${i % 4}`, 1_000_000));
  for (const sender of greedy) sender.go();
  for (let round = 0; round < 200; round++) await cell.answer(1);
  const passed = greedy.map(({ left }) => 1_000_000 - left);
  expect(Math.min(...passed)).toBeGreaterThan(Math.max(...passed) / 2);
  const newcomer = new Sender(pace, cell, "newcomer", 20);
  newcomer.go();
  await cell.answer(1);
  await cell.answer(1);
  expect(newcomer.left).toBe(0);
});

it("passes less of an account whose frames take much time, and not less of others", async () => {
  const cell = new Cell();
  const pace = new FramePace(cell);
  const slow = new Sender(pace, cell, "slow", 1_000_000);
  slow.go();
  for (let i = 0; i < 10; i++) await cell.answer(100);
  const before = slow.left;
  await cell.answer(20);
  expect(before - slow.left).toBe(4);
  const other = new Sender(pace, cell, "other", 64);
  other.go();
  expect(other.left).toBe(0);
  for (let i = 0; i < 20; i++) await cell.answer(1);
  const fast = slow.left;
  await cell.answer(1);
  expect(fast - slow.left).toBe(2048);
});
