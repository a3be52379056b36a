import type { Cell } from "../cell.ts";
import type { FaultKind } from "../errors.ts";
import type { CellProcess } from "../process/process.ts";
import type { CellSettings } from "../settings.ts";
import type { Traffic } from "./traffic.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** The part of a cell that is measured. */
export type WatchedCell = Pick<
  Cell,
  "runs" | "loads" | "loadedBytes" | "begun" | "answers" | "subrequests" | "lastActivityAt" | "ping"
> & {
  readonly traffic: Pick<Traffic, "bytes">;
  readonly process: Pick<CellProcess, "cpuMs" | "rssBytes">;
  /** Number of instances of objects that were started, if it is a cell of objects. */
  readonly objectStarts?: number;
  /** Messages to WebSockets of objects. */
  readonly objectMessages?: number;
};

/**
 * Expected growth of a cell's memory: for each loaded script (its code as text, parsed, decoded, compiled and
 * in the script's own form), each request while it is in progress (80 KiB were measured) and after it until
 * the next garbage collection (14 KiB for small ones), each subrequest (60 KiB; 160 KiB if it calls another
 * script), each object that starts, each message to a WebSocket of an object, each byte received or sent, and a slow
 * drift.
 */
const scriptBytes = 3 * 1024 * 1024;
const bytesPerCodeByte = 10;
const requestBytes = 128 * 1024;
const subrequestBytes = 192 * 1024;
const answerBytes = 256 * 1024;
/** An object with storage; 512 KB were measured. */
const objectBytes = 640 * 1024;
/** A message to a sleeping object: 1,000 messages to 100 objects took 233 MB, including the objects. */
const objectMessageBytes = 192 * 1024;
const wakingHalfLifeMs = 5000;
const passingBytesPerByte = 2;
const driftBytesPerMs = 24 * 1024;
/** CPU time without a sign of life after which a cell is pinged. */
const askAfterCpuMs = 20;
/**
 * Most CPU time that one check counts as silence. A late check is this process's own fault: messages of the
 * cell have not been read yet.
 */
const silenceMsMax = 20;
const memoryEveryMs = 10;
/**
 * CPU time that is allowed for each byte between the gateway and a cell, and not counted against a script:
 * the cost of a stream that changes each chunk a little. The limit is for computation.
 */
const passingMsPerByte = 25 / (1024 * 1024);

/** Measures one shared cell from one check to the next. */
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
  #loadedBytes = 0;
  #begun = 0;
  #subrequests = 0;
  #answers = 0;
  #objectStarts = 0;
  #objectMessages = 0;
  /** Growth that waking objects may still cause. */
  #wakingBytes = 0;
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

  /** Resident memory at the last check. */
  get rssBytes(): number {
    return this.#rssBytes;
  }

  /** Returns the fault of the cell, if it has one, and adds each run's share of the cell's CPU time. */
  check(now: number, settings: CellSettings): FaultKind | undefined {
    const cell = this.#cell;
    const cpuMs = cell.process.cpuMs();
    if (Number.isNaN(cpuMs)) return undefined; // `#waitForEnd` of Cells reports the exit
    const usedMs = cpuMs - this.#cpuMs;
    const trafficBytes = cell.traffic.bytes;
    const computedMs = Math.max(0, usedMs - (trafficBytes - this.#trafficBytes) * passingMsPerByte);
    for (const cellRun of cell.runs) cellRun.cpuShareMs += computedMs / Math.max(1, cell.runs.size);
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
    unawaited(
      this.#cell
        .ping()
        .then(
          () => (this.#silentCpuMs = 0),
          () => undefined,
        )
        .finally(() => (this.#isAsking = false)),
    );
  }

  #memory(now: number, settings: CellSettings): FaultKind | undefined {
    const elapsedMs = now - this.#memoryAt;
    if (elapsedMs < memoryEveryMs) return undefined;
    const rssBytes = this.#cell.process.rssBytes();
    this.#rssBytes = rssBytes;
    const { loads, loadedBytes, begun, subrequests, answers, traffic } = this.#cell;
    const { objectStarts = 0, objectMessages = 0 } = this.#cell;
    const wakingBytes =
      (objectStarts - this.#objectStarts) * objectBytes +
      (objectMessages - this.#objectMessages) * objectMessageBytes;
    // Messages may arrive long before the cell has read them.
    this.#wakingBytes = this.#wakingBytes * 0.5 ** (elapsedMs / wakingHalfLifeMs) + wakingBytes;
    const expectedBytes =
      wakingBytes +
      (loads - this.#loads) * scriptBytes +
      (loadedBytes - this.#loadedBytes) * bytesPerCodeByte +
      (begun - this.#begun) * requestBytes +
      (subrequests - this.#subrequests) * subrequestBytes +
      (answers - this.#answers) * answerBytes +
      (traffic.bytes - this.#memoryTrafficBytes) * passingBytesPerByte +
      elapsedMs * driftBytesPerMs;
    this.#memoryAt = now;
    this.#memoryTrafficBytes = traffic.bytes;
    this.#loads = loads;
    this.#loadedBytes = loadedBytes;
    this.#begun = begun;
    this.#subrequests = subrequests;
    this.#answers = answers;
    this.#objectStarts = objectStarts;
    this.#objectMessages = objectMessages;
    this.#floorBytes = Math.min(rssBytes + this.#wakingBytes, this.#floorBytes + expectedBytes);
    let limitBytes = settings.memoryBytesMax;
    for (const cellRun of this.#cell.runs) limitBytes = Math.min(limitBytes, cellRun.script.memoryBytes);
    return rssBytes - this.#floorBytes > limitBytes ? "memory" : undefined;
  }
}

/** Measures one run that has a cell to itself. */
export class DedicatedWatch {
  readonly #cell: WatchedCell;
  readonly #startCpuMs: number;
  readonly #startBytes: number;
  readonly #startTrafficBytes: number;
  readonly #limits: { cpuMs: number; memoryBytes: number };
  #lastCpuMs: number;

  constructor(cell: WatchedCell, limits: { cpuMs: number; memoryBytes: number }) {
    this.#cell = cell;
    this.#limits = limits;
    this.#startCpuMs = cell.process.cpuMs();
    this.#lastCpuMs = this.#startCpuMs;
    this.#startBytes = cell.process.rssBytes();
    this.#startTrafficBytes = cell.traffic.bytes;
  }

  /** After the end of the process: as last seen. */
  get usedCpuMs(): number {
    return this.#cpuMs() - this.#startCpuMs;
  }

  #cpuMs(): number {
    const cpuMs = this.#cell.process.cpuMs();
    if (!Number.isNaN(cpuMs)) this.#lastCpuMs = cpuMs;
    return this.#lastCpuMs;
  }

  /** CPU time of the process at which the limit is reached. */
  get endCpuMs(): number {
    return this.#startCpuMs + this.#limits.cpuMs + this.#passedBytes * passingMsPerByte;
  }

  get #passedBytes(): number {
    return this.#cell.traffic.bytes - this.#startTrafficBytes;
  }

  check(): FaultKind | undefined {
    const { memoryBytes } = this.#limits;
    const grownBytes = this.#cell.process.rssBytes() - this.#startBytes;
    if (grownBytes > memoryBytes + Math.min(this.#passedBytes * passingBytesPerByte, memoryBytes))
      return "memory";
    if (!(this.#cpuMs() > this.endCpuMs)) return undefined;
    // Allocating much memory takes CPU time too: then memory is the more useful message.
    return grownBytes > memoryBytes / 4 ? "memory" : "cpu";
  }
}
