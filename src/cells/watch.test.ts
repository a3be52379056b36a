import { describe, expect, it } from "vitest";
import { snippet } from "./testing.ts";
import { cellDefaults, type CellSettings } from "./settings.ts";
import { SharedWatch, SoloWatch, type WatchedCell } from "./watch.ts";

const mebibyte = 1024 * 1024;
const settings: CellSettings = { ...cellDefaults, stallCpuMs: 80, memoryBytesMax: 128 * mebibyte };

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A cell of which only the figures exist. */
class FakeCell implements Writable<WatchedCell> {
  visits: WatchedCell["visits"] = new Set();
  loads = 0;
  answers = 0;
  lastActivityAt = 0;
  cpuMs = 100;
  rssBytes = 60 * mebibyte;
  traffic = { bytes: 0 };
  process = { cpuMs: () => this.cpuMs, rssBytes: () => this.rssBytes };
  pings: { answer(): void; fail(): void }[] = [];

  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.pings.push({ answer: resolve, fail: () => reject(new Error("closed")) });
    });
  }

  visit(owner: string, memoryBytes = 64 * mebibyte): { cpuShareMs: number } {
    const visit = {
      script: snippet(owner, "", { memoryBytes }),
      sentAt: 0,
      cpuShareMs: 0,
      fault: undefined,
    };
    this.visits.add(visit);
    return visit;
  }
}

describe("SharedWatch", () => {
  it("takes a cell that answers for a busy one, however much it works", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    for (let now = 10; now < 1000; now += 10) {
      cell.cpuMs += 10;
      cell.lastActivityAt = now;
      expect(watch.look(now, settings)).toBeUndefined();
    }
    expect(cell.pings).toHaveLength(0);
  });

  it("asks a cell that works in silence for a sign of life, once, and calls it stalled if there is none", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    const faults: unknown[] = [];
    for (let now = 10; now <= 90; now += 10) {
      cell.cpuMs += 10;
      faults.push(watch.look(now, settings));
    }
    expect(cell.pings).toHaveLength(1);
    expect(faults).toEqual([...Array.from({ length: 8 }, () => undefined), "cpu"]);
  });

  it("goes on when there is a sign, and when it could not be asked for", async () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    let now = 0;
    const work = (looks: number): (string | undefined)[] =>
      Array.from({ length: looks }, () => {
        cell.cpuMs += 15;
        return watch.look((now += 10), settings);
      });
    work(4);
    cell.pings[0]!.answer();
    await new Promise(setImmediate);
    expect(work(5)).toEqual(Array.from({ length: 5 }, () => undefined));
    expect(cell.pings).toHaveLength(2);
    cell.pings[1]!.fail();
    await new Promise(setImmediate);
    expect(work(1)).toEqual(["cpu"]);
  });

  it("does not take its own lateness for the cell's silence", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.cpuMs += 500;
    expect(watch.look(500, settings)).toBeUndefined();
  });

  it("does not count time in which the cell had no CPU", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    expect(watch.look(60_000, settings)).toBeUndefined();
    expect(cell.pings).toHaveLength(0);
  });

  it("lays the CPU time to the charge of those inside, in equal shares", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    const first = cell.visit("first");
    cell.cpuMs += 8;
    watch.look(10, settings);
    const second = cell.visit("second");
    cell.cpuMs += 8;
    watch.look(20, settings);
    expect([first.cpuShareMs, second.cpuShareMs]).toEqual([12, 4]);
  });

  it("lays nothing to anyone's charge for bytes that pass", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    const visit = cell.visit("a");
    cell.cpuMs += 27;
    cell.traffic.bytes += mebibyte;
    watch.look(10, settings);
    expect(visit.cpuShareMs).toBe(2);
  });

  it("calls sudden growth a fault, but neither scripts that are loaded, nor garbage, nor a slow drift", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    let now = 0;
    for (let i = 0; i < 100; i++) {
      cell.loads++;
      cell.rssBytes += 2 * mebibyte;
      expect(watch.look((now += 10), settings)).toBeUndefined();
    }
    for (let i = 0; i < 100; i++) {
      cell.answers += 50;
      cell.rssBytes += mebibyte;
      expect(watch.look((now += 10), settings)).toBeUndefined();
    }
    for (let i = 0; i < 300; i++) {
      cell.rssBytes += mebibyte / 5;
      expect(watch.look((now += 10), settings)).toBeUndefined();
    }
    cell.rssBytes += 129 * mebibyte;
    expect(watch.look((now += 10), settings)).toBe("memory");
  });

  it("holds to the least limit of those inside", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.rssBytes += 65 * mebibyte;
    expect(watch.look(10, settings)).toBeUndefined();
    cell.visit("small", 64 * mebibyte);
    expect(watch.look(20, settings)).toBe("memory");
  });

  it("leaves a cell that is gone to whoever reports its exit", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.cpuMs = Number.NaN;
    cell.rssBytes = Number.NaN;
    expect(watch.look(1000, settings)).toBeUndefined();
  });
});

describe("SoloWatch", () => {
  it("counts from where it began, exactly", () => {
    const cell = new FakeCell();
    const watch = new SoloWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.cpuMs += 50;
    cell.rssBytes += 64 * mebibyte;
    expect([watch.usedCpuMs, watch.look()]).toEqual([50, undefined]);
    cell.rssBytes += 1;
    expect(watch.look()).toBe("memory");
  });

  it("leaves a cell that is gone to whoever reports its exit", () => {
    const cell = new FakeCell();
    const watch = new SoloWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.cpuMs = Number.NaN;
    cell.rssBytes = Number.NaN;
    expect(watch.look()).toBeUndefined();
  });

  it("calls it memory where the time went into hoarding", () => {
    const cell = new FakeCell();
    const watch = new SoloWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.cpuMs += 50.1;
    expect(watch.look()).toBe("cpu");
    cell.rssBytes += 32 * mebibyte;
    expect(watch.look()).toBe("memory");
  });

  it("does not count what passing bytes on takes", () => {
    const cell = new FakeCell();
    const watch = new SoloWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.traffic.bytes += 100 * mebibyte;
    cell.cpuMs += 2550;
    expect(watch.look()).toBeUndefined();
    cell.cpuMs += 1;
    expect(watch.look()).toBe("cpu");
  });
});
