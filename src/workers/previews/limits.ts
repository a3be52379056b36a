import { mebibyte } from "../../platform/bytes.ts";

/** Limits of previews, in docs/reference/limits.md. Those of CPU time, memory and subrequests are the script's own. */
export const previewLimits = {
  /** Previews at the same time: of one account, and of all. Each takes a process. */
  accountMax: 2,
  totalMax: 4,
  /** Time of a run, with the work that it passes to `waitUntil`. */
  timeoutMsMin: 100,
  timeoutMsDefault: 10_000,
  timeoutMsMax: 30_000,
  /** Time in which the code must have started. */
  startMsMax: 30_000,
  /** Time for logs that are on their way when nothing more of the run is wanted. */
  logsMs: 1000,
  headersMax: 100,
  headerBytesMax: 32 * 1024,
  requestBodyBytesMax: mebibyte,
  responseBodyBytesMax: mebibyte,
  logsMax: 1000,
  logBytesMax: 512 * 1024,
  /** Messages with logs from the isolate, which sends at most 256 Ki characters. */
  logMessageBytesMax: mebibyte,
  logMessagesBytesMax: 4 * mebibyte,
};
