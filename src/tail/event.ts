/** One run of a script, as those who watch it see it: the public service's "trace item". */
export interface TailEvent {
  scriptName: string;
  scriptVersion: { id: string };
  dispatchNamespace?: string;
  entrypoint?: string;
  outcome: Outcome;
  event: RequestEvent | ScheduledEvent | QueueEvent | RpcEvent | null;
  eventTimestamp: number;
  logs: readonly TailLog[];
  exceptions: readonly TailException[];
  diagnosticsChannelEvents: readonly never[];
  executionModel: "stateless";
  /** Whether the script logged more than is told. */
  truncated: boolean;
  wallTime: number;
}

export type Outcome = "ok" | "canceled" | "exception" | "exceededCpu" | "exceededMemory" | "unknown";

export interface RequestEvent {
  request: { url: string; method: string; headers: Record<string, string>; cf?: unknown };
  response?: { status: number };
}
export interface ScheduledEvent {
  cron: string;
  scheduledTime: number;
}
export interface QueueEvent {
  queue: string;
  batchSize: number;
}

/** A method of an entrypoint was called: of a workflow's class it is `run`. */
export interface RpcEvent {
  rpcMethod: string;
}

export interface TailLog {
  level: string;
  message: readonly unknown[];
  timestamp: number;
}
export interface TailException {
  name: string;
  message: string;
  stack?: string | undefined;
  timestamp: number;
}
