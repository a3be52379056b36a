import type { Cell } from "./cell.ts";
import type { FaultKind } from "./errors.ts";
import type { CellProcess } from "./process.ts";
import type { CellSettings } from "./settings.ts";
import type { Traffic } from "./traffic.ts";

/** What is looked at of a cell. */
export type WatchedCell = Pick<Cell, "visits" | "loads" | "answers" | "lastActivityAt" | "ping"> & {
  readonly traffic: Pick<Traffic, "bytes">;
  readonly process: Pick<CellProcess, "cpuMs" | "rssBytes">;
};

/**
 * Memory that a cell may take on without it being anyone's fault: each script loaded, what each request leaves for the next
 * collection (measured: 14 KiB of small ones), what passing bytes leave (as they came, and as they went), and a slow drift.
 */
const scriptBytes = 3 * 1024 * 1024;
const answerBytes = 256 * 1024;
const passingBytesPerByte = 2;
const driftBytesPerMs = 24 * 1024;
/** CPU time without a sign of life from which on it is worth asking for one. */
const askAfterCpuMs = 20;
/**
 * CPU time that one look counts as silence. A look that comes late is this process's own fault: what the cell has said
 * meanwhile is not read yet.
 */
const silenceMsMax = 20;
const memoryEveryMs = 10;
/**
 * CPU time for bytes that pass between the front and a cell, which is not counted against a script: what a stream takes
 * that changes each part of it a little. The limit is for what a script computes.
 */
const passingMsPerByte = 25 / (1024 * 1024);

/** What is known of one shared cell from one look to the next. */
export class SharedWatch {
  readonly #cell: WatchedCell;
  #silentCpuMs = 0;
  #seenActivityAt: number;
  #cpuMs: number;
  #trafficBytes: number;
  #isAsking = false;
  #floorBytes: number;
  #memoryAt: number;
  #memoryTrafficBytes: number;
  #loads = 0;
  #answers = 0;
  #rssBytes: number;

  constructor(cell: WatchedCell, now: number) {
    this.#cell = cell;
    this.#cpuMs = cell.process.cpuMs();
    this.#seenActivityAt = cell.lastActivityAt;
    this.#trafficBytes = cell.traffic.bytes;
    this.#rssBytes = cell.process.rssBytes();
    this.#floorBytes = this.#rssBytes;
    this.#memoryAt = now;
    this.#memoryTrafficBytes = cell.traffic.bytes;
  }

  /** Resident memory, as it was seen last. */
  get rssBytes(): number {
    return this.#rssBytes;
  }

  /** Says which fault a cell has, if it has one, and lays its CPU time to the charge of those in it. */
  look(now: number, settings: CellSettings): FaultKind | undefined {
    const cell = this.#cell;
    const cpuMs = cell.process.cpuMs();
    if (Number.isNaN(cpuMs)) return undefined; // its exit is reported elsewhere
    const usedMs = cpuMs - this.#cpuMs;
    const trafficBytes = cell.traffic.bytes;
    const computedMs = Math.max(0, usedMs - (trafficBytes - this.#trafficBytes) * passingMsPerByte);
    for (const visit of cell.visits) visit.cpuShareMs += computedMs / Math.max(1, cell.visits.size);
    this.#cpuMs = cpuMs;
    this.#trafficBytes = trafficBytes;
    if (cell.lastActivityAt !== this.#seenActivityAt) {
      this.#seenActivityAt = cell.lastActivityAt;
      this.#silentCpuMs = 0;
    } else this.#silentCpuMs += Math.min(usedMs, silenceMsMax);
    if (this.#silentCpuMs > settings.stallCpuMs) return "cpu";
    if (this.#silentCpuMs > askAfterCpuMs && !this.#isAsking) this.#ask();
    return this.#memory(now, settings);
  }

  #ask(): void {
    this.#isAsking = true;
    void this.#cell
      .ping()
      .then(
        () => (this.#silentCpuMs = 0),
        () => undefined,
      )
      .finally(() => (this.#isAsking = false));
  }

  #memory(now: number, settings: CellSettings): FaultKind | undefined {
    const elapsedMs = now - this.#memoryAt;
    if (elapsedMs < memoryEveryMs) return undefined;
    const rssBytes = this.#cell.process.rssBytes();
    this.#rssBytes = rssBytes;
    const { loads, answers, traffic } = this.#cell;
    const expectedBytes =
      (loads - this.#loads) * scriptBytes +
      (answers - this.#answers) * answerBytes +
      (traffic.bytes - this.#memoryTrafficBytes) * passingBytesPerByte +
      elapsedMs * driftBytesPerMs;
    this.#memoryAt = now;
    this.#memoryTrafficBytes = traffic.bytes;
    this.#loads = loads;
    this.#answers = answers;
    this.#floorBytes = Math.min(rssBytes, this.#floorBytes + expectedBytes);
    let limitBytes = settings.memoryBytesMax;
    for (const visit of this.#cell.visits) limitBytes = Math.min(limitBytes, visit.script.memoryBytes);
    return rssBytes - this.#floorBytes > limitBytes ? "memory" : undefined;
  }
}

/** The exact account of one script that has a cell to itself. */
export class SoloWatch {
  readonly #cell: WatchedCell;
  readonly #startCpuMs: number;
  readonly #startBytes: number;
  readonly #startTrafficBytes: number;
  readonly #limits: { cpuMs: number; memoryBytes: number };

  constructor(cell: WatchedCell, limits: { cpuMs: number; memoryBytes: number }) {
    this.#cell = cell;
    this.#limits = limits;
    this.#startCpuMs = cell.process.cpuMs();
    this.#startBytes = cell.process.rssBytes();
    this.#startTrafficBytes = cell.traffic.bytes;
  }

  get usedCpuMs(): number {
    return this.#cell.process.cpuMs() - this.#startCpuMs;
  }

  /** CPU time of the process at which the limit is reached. */
  get endCpuMs(): number {
    return this.#startCpuMs + this.#limits.cpuMs + this.#passedBytes * passingMsPerByte;
  }

  get #passedBytes(): number {
    return this.#cell.traffic.bytes - this.#startTrafficBytes;
  }

  look(): FaultKind | undefined {
    const { memoryBytes } = this.#limits;
    const grownBytes = this.#cell.process.rssBytes() - this.#startBytes;
    if (grownBytes > memoryBytes + Math.min(this.#passedBytes * passingBytesPerByte, memoryBytes))
      return "memory";
    // Once the process is gone there is nothing to be found: its exit is reported elsewhere.
    if (!(this.#cell.process.cpuMs() > this.endCpuMs)) return undefined;
    // One that hoards spends its time on it: it is told what it did.
    return grownBytes > memoryBytes / 4 ? "memory" : "cpu";
  }
}
