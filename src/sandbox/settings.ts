import { availableParallelism } from "node:os";
import type { CurrentData } from "../platform/processes/main-channel.ts";
import type { RunAdmissionLimits } from "./limits/admission.ts";
import { mebibyte } from "../platform/bytes.ts";

/** Limits of cells and of the scripts in them; listed in docs/reference/limits.md. */
export interface CellSettings {
  /** Number of shared cells. */
  shared: number;
  /** Number of booted cells kept in reserve. */
  spares: number;
  /** Maximum number of dedicated cells. */
  dedicatedMax: number;
  /** Maximum number of cells that boot at the same time. */
  bootsMax: number;
  /** Maximum number of requests that wait for a dedicated cell, for each owner with faults. */
  dedicatedQueueMax: number;
  /** Maximum numbers of requests and of WebSockets for each shared cell; see admission.ts. */
  inFlightMax: number;
  socketsMax: number;
  /** The part of these slots that one account may use. */
  accountShare: number;
  /**
   * Time after which a waiting request is refused, and after which it may evict a run of an account with more
   * slots.
   */
  waitMs: number;
  patienceMs: number;
  /**
   * CPU time without a sign of life after which a shared cell counts as stalled. A garbage collection takes
   * up to 170 ms.
   */
  stallCpuMs: number;
  /** CPU time and wall-clock time that a terminating cell has for requests that cannot be retried. */
  graceCpuMs: number;
  graceMsMax: number;
  /** CPU time that a script may use to load. */
  startupCpuMs: number;
  /** A cell whose memory grows by this much more than its scripts need has a fault. */
  memoryBytesMax: number;
  /**
   * Size of V8's young generation, a multiple of 1 MiB. Objects that survive two collections of it are
   * expensive to collect.
   */
  youngBytesMax: number;
  /** Resident memory of a shared cell. Near it scripts are unloaded; then the cell is replaced. */
  cellBytesMax: number;
  /** Number of replaced cells that drain at the same time, and the minimum time for each. */
  drainingMax: number;
  drainMsMin: number;
  /** Time that a draining cell has after its last answer, and in all. */
  lingerMs: number;
  drainMsMax: number;
  /** Maximum number of scripts loaded in one cell. */
  scriptsMax: number;
  /** Maximum time from spawn to the first answer. */
  bootTimeoutMs: number;
  /** Time that an idle dedicated cell is kept for its owner. */
  dedicatedIdleMs: number;
  /** Maximum number of cells of objects at the same time. */
  objectCellsMax: number;
  /** Cells of objects of other nodes that a cell can call methods of at the same time. */
  remoteTunnels: number;
  /** The fraction of these cells that one account may use, and the time after which a waiting call is refused. */
  objectAccountShare: number;
  objectWaitMs: number;
  /** Good runs in dedicated cells after which an owner with a fault leaves quarantine (see Quarantine). */
  dedicatedRunsToTrust: number;
  /** In an edge process: whether its data is that of the main process. Requests of scripts wait until it is. */
  mainChannel?: CurrentData | undefined;
}

/** Admission limits for all shared cells together. */
export function admissionLimits(
  { shared, accountShare, waitMs, patienceMs }: CellSettings,
  slotsPerCell: number,
): RunAdmissionLimits {
  const capacity = shared * slotsPerCell;
  const accountMax = Math.max(1, Math.floor(capacity * accountShare));
  // With a share of 3, a script that is alone gets three quarters of its account's slots.
  return { capacity, accountMax, scriptShare: 3, waitMs, patienceMs };
}

/** Limits on messages from a cell. They bound the memory that a hostile cell can take in this process. */
export const protocolLimits = {
  /** Connections of a cell to the gateway. */
  connections: 16_384,
  /** Time in which a cell ends objects. A run may occupy its thread meanwhile. */
  resetMs: 60_000,
  /** Connections that wait to be accepted while this process is busy; further ones of the cell fail at once. */
  backlog: 4096,
  /** Code that is being sent to a cell; further loads are refused meanwhile. */
  codeBytes: 512 * mebibyte,
  /** Code of scripts that a cell may still load. */
  offeredBytes: 128 * mebibyte,
  /** A message of a snippet's channel: the head of a fetch or of an answer as JSON, and a short body. */
  channelMessageBytes: mebibyte,
  channelHeadLength: 256 * 1024,
  /** Messages of a channel for each of its requests. */
  channelMessagesPerRun: 1000,
  /** Unsent messages to a snippet that does not read them. */
  channelUnsentBytes: 32 * mebibyte,
  /** A line of a cell's standard error; the rest of the line is dropped. */
  lineBytes: 4096,
  /** Lists of loaded scripts, and other short answers to the gateway itself. */
  controlBytes: mebibyte,
};

/** The settings of cells where nothing else is configured. */
export const cellDefaults: CellSettings = {
  shared: 2,
  spares: 1,
  dedicatedMax: 8,
  bootsMax: availableParallelism(),
  dedicatedQueueMax: 100,
  inFlightMax: 1000,
  socketsMax: 3000,
  accountShare: 0.25,
  waitMs: 10_000,
  patienceMs: 1000,
  stallCpuMs: 250,
  graceCpuMs: 3000,
  graceMsMax: 15_000,
  startupCpuMs: 400,
  memoryBytesMax: 128 * mebibyte,
  youngBytesMax: 2 * mebibyte,
  cellBytesMax: 768 * mebibyte,
  drainingMax: 1,
  drainMsMin: 2000,
  lingerMs: 30_000,
  drainMsMax: 300_000,
  scriptsMax: 250,
  bootTimeoutMs: 10_000,
  dedicatedIdleMs: 10_000,
  dedicatedRunsToTrust: 20,
  objectCellsMax: 16,
  remoteTunnels: 0,
  objectAccountShare: 0.25,
  objectWaitMs: 5000,
};

/** Cells of objects of other nodes that a cell can call methods of at the same time, if there are other nodes. */
export const remoteTunnelsMax = 64;

/** Cells of objects. Each live object takes 0.5 MB, and one that is busy keeps others of its cell waiting. */
export const objectSettings: CellSettings = {
  ...cellDefaults,
  stallCpuMs: 1000,
  cellBytesMax: 1024 * mebibyte,
};
