import { availableParallelism } from "node:os";

/** Limits of cells and of what runs in them; each stands in docs/reference/limits.md. */
export interface CellSettings {
  /** Cells that many scripts share. */
  shared: number;
  /** Booted cells that wait for a fault or for a suspect. */
  spares: number;
  /** Cells that suspects have to themselves, at most; further suspects wait. */
  soloMax: number;
  /** Cells that boot at a time. */
  bootsMax: number;
  /** Requests that wait for a solo cell, at most, for each owner. */
  soloQueueMax: number;
  /** Requests in one shared cell at a time; further ones wait. */
  inFlightMax: number;
  /** CPU time without a sign of life after which a shared cell counts as stalled: a collection takes up to 170 ms. */
  stallCpuMs: number;
  /** CPU time that a script may take to load. */
  startupCpuMs: number;
  /** Growth of a cell's memory over what is normal that counts as a script's fault. */
  memoryBytesMax: number;
  /** Space of an isolate for new objects: a multiple of a megabyte. What outlives two collections of it is dear to collect. */
  youngBytesMax: number;
  /** Resident memory that a shared cell stays below: near it, scripts are unloaded, and in the end the cell is replaced. */
  cellBytesMax: number;
  /** Time that a replaced cell has after its last answer, and in all. */
  lingerMs: number;
  drainMsMax: number;
  /** Scripts loaded in one cell, at most. */
  scriptsMax: number;
  /** Time from spawn to the first answer. */
  bootTimeoutMs: number;
  /** Time that an idle solo cell is kept for its owner. */
  soloIdleMs: number;
  /** Runs in solo cells without a fault after which an owner is trusted again. */
  soloRunsToTrust: number;
}

const mebibyte = 1024 * 1024;
export const cellDefaults: CellSettings = {
  shared: 2,
  spares: 1,
  soloMax: 8,
  bootsMax: availableParallelism(),
  soloQueueMax: 100,
  inFlightMax: 500,
  stallCpuMs: 250,
  startupCpuMs: 400,
  memoryBytesMax: 128 * mebibyte,
  youngBytesMax: 2 * mebibyte,
  cellBytesMax: 768 * mebibyte,
  lingerMs: 30_000,
  drainMsMax: 300_000,
  scriptsMax: 250,
  bootTimeoutMs: 10_000,
  soloIdleMs: 10_000,
  soloRunsToTrust: 20,
};
