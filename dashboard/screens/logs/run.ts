/** A tail event about a run of a script; the fields that the console uses. */
export interface Run {
  /** Null in a message about the tail itself. */
  scriptName: string | null;
  scriptVersion?: { id: string };
  dispatchNamespace?: string;
  entrypoint?: string;
  outcome: string;
  event: RunEvent | null;
  eventTimestamp: number;
  logs: RunLog[];
  exceptions: { name: string; message: string; stack?: string; timestamp: number }[];
  durableObjectId?: string;
  traceId?: string;
  truncated?: boolean;
  wallTime?: number;
}

export interface RunLog {
  level: string;
  message: unknown[];
  timestamp: number;
}

interface RunEvent {
  request?: { url: string; method: string; headers: Record<string, string> };
  response?: { status: number };
  cron?: string;
  scheduledTime?: number | string;
  queue?: string;
  batchSize?: number;
  rpcMethod?: string;
  getWebSocketEvent?: { webSocketEventType: string };
  /** Of a message about the tail: "overload" or "overload-stop". */
  type?: string;
  message?: string;
}

export const outcomes = ["ok", "canceled", "exception", "exceededCpu", "exceededMemory", "unknown"] as const;
export const levels = ["debug", "log", "info", "warn", "error"] as const;

/** The event that started the run, in a few words: "GET /orders?page=2". */
export function titleOf({ event }: Run): string {
  if (event === null) return "run";
  if (event.request !== undefined) {
    const { url, method } = event.request;
    const parsed = URL.parse(url);
    return `${method} ${parsed === null ? url : parsed.pathname + parsed.search}`;
  }
  if (event.message !== undefined) return event.message;
  if (event.cron !== undefined) return `schedule ${event.cron}`;
  if (event.queue !== undefined) return `${event.batchSize ?? 0} of queue ${event.queue}`;
  if (event.rpcMethod !== undefined) return `call of ${event.rpcMethod}`;
  if (event.getWebSocketEvent !== undefined) return `WebSocket ${event.getWebSocketEvent.webSocketEventType}`;
  return event.scheduledTime === undefined ? "run" : "alarm";
}

/** The status of the answer, or the outcome if it is not well. */
export const endOf = (run: Run): string =>
  run.outcome === "ok" ? String(run.event?.response?.status ?? "ok") : run.outcome;

export function toneOf(run: Run): "ok" | "bad" | "warn" | "off" {
  if (run.scriptName === null) return "warn";
  if (run.outcome === "canceled") return "off";
  const status = run.event?.response?.status ?? 200;
  if (run.outcome !== "ok" || status >= 500) return "bad";
  return status >= 400 ? "warn" : "ok";
}

/** A line of the log as one text. */
export const lineOf = ({ message }: RunLog): string =>
  message.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" ");

/** The first log lines of a run, for its row. */
export const summaryOf = ({ exceptions, logs }: Run): string =>
  [...exceptions.map(({ name, message }) => `${name}: ${message}`), ...logs.map(lineOf)].join(" · ");

/** The filter of the screen. Empty text matches all. */
export interface RunFilter {
  outcome: string;
  status: string;
  level: string;
  text: string;
}

/** Whether a run matches. A message about the tail always does. */
export function matches(run: Run, { outcome, status, level, text }: RunFilter): boolean {
  if (run.scriptName === null) return true;
  if (outcome !== "" && !isOutcome(run.outcome, outcome)) return false;
  if (status !== "" && String(run.event?.response?.status ?? "").slice(0, 1) !== status) return false;
  const from = levels.indexOf(level as (typeof levels)[number]);
  const isLoud =
    from <= 0 ||
    run.exceptions.length > 0 ||
    run.logs.some((log) => levels.indexOf(log.level as (typeof levels)[number]) >= from);
  if (!isLoud) return false;
  const wanted = text.toLowerCase();
  const has = (given: string | undefined): boolean => given?.toLowerCase().includes(wanted) === true;
  return (
    wanted === "" ||
    has(run.scriptName) ||
    has(run.event?.request?.url) ||
    has(titleOf(run)) ||
    has(summaryOf(run))
  );
}

const isOutcome = (outcome: string, wanted: string): boolean =>
  wanted === "faults" ? outcome !== "ok" && outcome !== "canceled" : outcome === wanted;

/** The filters that the server applies, so that other runs are not sent. */
export const serverFilters = ({ outcome }: Pick<RunFilter, "outcome">, share: string): object[] => [
  ...(outcome === ""
    ? []
    : [{ outcome: outcome === "faults" ? outcomes.filter((each) => isOutcome(each, outcome)) : [outcome] }]),
  ...(share === "" ? [] : [{ sampling_rate: Number(share) }]),
];
