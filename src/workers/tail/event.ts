/** One run of a script for its watchers: the public service's "trace item". */
export interface TailEvent {
  scriptName: string;
  scriptVersion: { id: string };
  dispatchNamespace?: string;
  entrypoint?: string;
  outcome: Outcome;
  event: RequestEvent | ScheduledEvent | QueueEvent | RpcEvent | WebSocketEvent | AlarmEvent | null;
  eventTimestamp: number;
  logs: readonly TailLog[];
  exceptions: readonly TailException[];
  diagnosticsChannelEvents: readonly never[];
  executionModel: "stateless" | "durableObject";
  /** The id of the object, for runs of Durable Objects. */
  durableObjectId?: string;
  /** The run's span, with traces. */
  traceId?: string;
  spanId?: string;
  /** Whether logs were dropped. */
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

/** A method call of an entrypoint; for a class of workflows the method is `run`. */
export interface RpcEvent {
  rpcMethod: string;
}

/** An event of a WebSocket that an object has accepted for hibernation. */
export interface WebSocketEvent {
  getWebSocketEvent: { webSocketEventType: "message" | "close" | "error" };
}

/** An alarm of an object. */
export interface AlarmEvent {
  scheduledTime: string;
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
