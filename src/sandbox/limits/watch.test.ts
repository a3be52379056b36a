import { describe, expect, it } from "vitest";
import { snippet } from "../testing.ts";
import { cellDefaults, type CellSettings } from "../settings.ts";
import { newCellRun } from "../gateway/cell-run.ts";
import { SharedWatch, DedicatedWatch, type WatchedCell } from "./watch.ts";
import { mebibyte } from "../../platform/bytes.ts";

const settings: CellSettings = { ...cellDefaults, stallCpuMs: 80, memoryBytesMax: 128 * mebibyte };

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A simulated cell: figures only. */
class FakeCell implements Writable<WatchedCell> {
  runs: WatchedCell["runs"] = new Set();
  loads = 0;
  loadedBytes = 0;
  begun = 0;
  subrequests = 0;
  answers = 0;
  objectStarts = 0;
  objectMessages = 0;
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

  addRun(owner: string, memoryBytes = 64 * mebibyte): { cpuShareMs: number } {
    const cellRun = newCellRun(snippet(owner, "", { memoryBytes }));
    cellRun.sentAt = 0;
    this.runs.add(cellRun);
    return cellRun;
  }
}

describe("SharedWatch", () => {
  it("expects the memory of sleeping objects that messages wake", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    // 10,000 messages to 1,000 objects: ten times the measured growth.
    for (let step = 1; step <= 100; step++) {
      cell.objectStarts += 10;
      cell.objectMessages += 100;
      cell.rssBytes += 23 * mebibyte;
      expect(watch.check(step * 20, settings)).toBeUndefined();
    }
    expect(watch.check(60_000, settings)).toBeUndefined();
    cell.rssBytes += 2 * settings.memoryBytesMax;
    expect(watch.check(60_020, settings)).toBe("memory");
  });

  it("expects it also if all messages arrive before the cell reads the first", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.objectStarts = 100;
    cell.objectMessages = 1000;
    for (let now = 20; now <= 2000; now += 20) {
      cell.rssBytes += 2.3 * mebibyte;
      expect(watch.check(now, settings)).toBeUndefined();
    }
  });

  it("treats a cell that answers as busy, with any CPU time", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    for (let now = 10; now < 1000; now += 10) {
      cell.cpuMs += 10;
      cell.lastActivityAt = now;
      expect(watch.check(now, settings)).toBeUndefined();
    }
    expect(cell.pings).toHaveLength(0);
  });

  it("pings a silent busy cell once, and reports it as stalled without an answer", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    const faults: unknown[] = [];
    for (let now = 10; now <= 90; now += 10) {
      cell.cpuMs += 10;
      faults.push(watch.check(now, settings));
    }
    expect(cell.pings).toHaveLength(1);
    expect(faults).toEqual([...Array.from({ length: 8 }, () => undefined), "cpu"]);
  });

  it("goes on after an answer, and when the ping failed", async () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    let now = 0;
    const work = (checks: number): (string | undefined)[] =>
      Array.from({ length: checks }, () => {
        cell.cpuMs += 15;
        return watch.check((now += 10), settings);
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

  it("does not mistake its own late checks for silence of the cell", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.cpuMs += 500;
    expect(watch.check(500, settings)).toBeUndefined();
  });

  it("does not count time in which the cell had no CPU", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    expect(watch.check(60_000, settings)).toBeUndefined();
    expect(cell.pings).toHaveLength(0);
  });

  it("splits CPU time evenly among the runs inside", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    const first = cell.addRun("first");
    cell.cpuMs += 8;
    watch.check(10, settings);
    const second = cell.addRun("second");
    cell.cpuMs += 8;
    watch.check(20, settings);
    expect([first.cpuShareMs, second.cpuShareMs]).toEqual([12, 4]);
  });

  it("charges no run for passing bytes", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    const cellRun = cell.addRun("a");
    cell.cpuMs += 27;
    cell.traffic.bytes += mebibyte;
    watch.check(10, settings);
    expect(cellRun.cpuShareMs).toBe(2);
  });

  it("reports sudden growth as a fault, but not loaded scripts, garbage or a slow drift", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    let now = 0;
    for (let i = 0; i < 100; i++) {
      cell.loads++;
      cell.rssBytes += 2 * mebibyte;
      expect(watch.check((now += 10), settings)).toBeUndefined();
    }
    for (let i = 0; i < 100; i++) {
      cell.answers += 50;
      cell.rssBytes += mebibyte;
      expect(watch.check((now += 10), settings)).toBeUndefined();
    }
    for (let i = 0; i < 300; i++) {
      cell.rssBytes += mebibyte / 5;
      expect(watch.check((now += 10), settings)).toBeUndefined();
    }
    cell.rssBytes += 129 * mebibyte;
    expect(watch.check((now += 10), settings)).toBe("memory");
  });

  it("applies the lowest limit of the runs inside", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.rssBytes += 65 * mebibyte;
    expect(watch.check(10, settings)).toBeUndefined();
    cell.addRun("small", 64 * mebibyte);
    expect(watch.check(20, settings)).toBe("memory");
  });

  it("reports no fault for a cell that has exited", () => {
    const cell = new FakeCell();
    const watch = new SharedWatch(cell, 0);
    cell.cpuMs = Number.NaN;
    cell.rssBytes = Number.NaN;
    expect(watch.check(1000, settings)).toBeUndefined();
  });
});

describe("DedicatedWatch", () => {
  it("measures exactly from its start", () => {
    const cell = new FakeCell();
    const watch = new DedicatedWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.cpuMs += 50;
    cell.rssBytes += 64 * mebibyte;
    expect([watch.usedCpuMs, watch.check()]).toEqual([50, undefined]);
    cell.rssBytes += 1;
    expect(watch.check()).toBe("memory");
  });

  it("reports no fault for a cell that has exited", () => {
    const cell = new FakeCell();
    const watch = new DedicatedWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.cpuMs = Number.NaN;
    cell.rssBytes = Number.NaN;
    expect(watch.check()).toBeUndefined();
  });

  it("reports memory when the CPU time was spent on allocation", () => {
    const cell = new FakeCell();
    const watch = new DedicatedWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.cpuMs += 50.1;
    expect(watch.check()).toBe("cpu");
    cell.rssBytes += 32 * mebibyte;
    expect(watch.check()).toBe("memory");
  });

  it("does not count the CPU time for passing on bytes", () => {
    const cell = new FakeCell();
    const watch = new DedicatedWatch(cell, { cpuMs: 50, memoryBytes: 64 * mebibyte });
    cell.traffic.bytes += 100 * mebibyte;
    cell.cpuMs += 2550;
    expect(watch.check()).toBeUndefined();
    cell.cpuMs += 1;
    expect(watch.check()).toBe("cpu");
  });
});
