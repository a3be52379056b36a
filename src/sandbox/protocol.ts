/*
 * The protocol between this process and its cells, in one module for both sides: names of headers, and the JSON that goes with
 * requests. It imports nothing, because the system worker and the wrappers of scripts load it inside workerd.
 */

/** Headers between the gateway and a cell. The edge removes headers with this prefix from visitors' requests. */
export const cellHeaders = {
  prefix: "x-selvedge-",
  /** The token of the run that a cell's request is for. */
  run: "x-selvedge-run",
  binding: "x-selvedge-binding",
  event: "x-selvedge-event",
  pass: "x-selvedge-pass",
  socket: "x-selvedge-socket",
  image: "x-selvedge-image",
  /** JSON of ObjectReference: the Durable Object that a request through a binding is for. */
  object: "x-selvedge-object",
  /** JSON of AlarmNotice: the alarm of the Durable Object that sends the request. */
  alarm: "x-selvedge-alarm",
  /** JSON of BookmarkOrder: the bookmark request of the Durable Object that sends the request. */
  bookmark: "x-selvedge-bookmark",
  dispatch: "x-selvedge-dispatch",
  outbound: "x-selvedge-outbound",
  /** JSON: the dispatch inside the cell that a request is for. */
  child: "x-selvedge-child",
  /** JSON of RunMetadata. workerd passes it to the system worker as `request.cf` (`cfBlobHeader`). */
  metadata: "x-selvedge-metadata",
  proto: "x-selvedge-proto",
  /** The cell's secret: marks an answer as the system worker's own. */
  outcome: "x-selvedge-outcome",
  /** The cell's secret: marks a request as the system worker's own. */
  control: "x-selvedge-control",
  error: "x-selvedge-error",
  errorName: "x-selvedge-error-name",
  errorCode: "x-selvedge-error-code",
  /** Comma-separated flags that the error gets as properties: retryable, overloaded. */
  errorFlags: "x-selvedge-error-flags",
  channel: "x-selvedge-channel",
} as const;

/** Headers to the gateway that only a wrapper or the system worker may set: removed from what scripts send. */
export const wrapperHeaders = [
  cellHeaders.binding,
  cellHeaders.channel,
  cellHeaders.dispatch,
  cellHeaders.outbound,
  cellHeaders.event,
  cellHeaders.pass,
  cellHeaders.socket,
  cellHeaders.image,
  cellHeaders.object,
  cellHeaders.alarm,
  cellHeaders.bookmark,
] as const;

/**
 * Platform metadata attached to a request: the run that it belongs to, and what the script's wrapper must do. workerd carries it
 * as `request.cf`, into a cell and from one script to the next, so no header has to be added or removed. Scripts see
 * only `visitor` of it (worker/run.ts).
 */
export interface RunMetadata {
  /** The token of the run; empty for the system worker's own requests. Marks the object as the platform's. */
  selvedgeRun: string;
  /** The id of the script, for the system worker. */
  script?: string;
  /** The export to run; the default export when absent. */
  entrypoint?: string;
  /** For a script that dispatches: the generation of the configuration, a space, the subrequests left. */
  generation?: string;
  /**
   * For a run that may call objects of its cell without the gateway, separated by spaces: the generation of the
   * configuration, the number of such calls after which it asks again, and how deep they may go.
   */
  calls?: string;
  /** The cell's secret, when the engine of workflows opens its stream. */
  workflowStream?: string;
  /** JSON that the script sees as `request.cf`; undefined there when absent. */
  visitor?: string;
  /** The handler to call when it is not `fetch`. */
  event?: string;
  /** Whether the run's logs are collected: until its end, or sent `early`, because it may be ended. */
  isTraced?: boolean | "early";
  /** Added to the script's `env`. */
  params?: Record<string, unknown>;
  /** The Durable Object that the request is for, in a cell of objects. */
  object?: ObjectAddress;
  /** Tokens of runs whose visitors have left, for the script's isolate. */
  left?: readonly string[];
  /** The isolate must drop its stubs of hosts of objects. */
  dropsHosts?: true;
  /** The request is the object's alarm. */
  alarm?: AlarmCall;
}

/** An attempt to run an object's alarm. */
export interface AlarmCall {
  /** Attempts of this alarm that have failed. */
  retryCount: number;
  /** `run` the alarm, `last`: after a failure it is not tried again, or `drop` it without running it. */
  order: "run" | "last" | "drop";
  /** The platform's time. The clock of the object may be behind it. */
  now: number;
}

/** An object's message about its alarm: its time in milliseconds since 1970, or null without one. */
export interface AlarmNotice {
  due: number | null;
  /** A random number of the instance. Of the notices of one instance, the one with the highest `number` is the newest. */
  instance: number;
  number: number;
  /** The name that the object's id was made of, if the instance knows it. */
  name?: string;
  jurisdiction?: string;
}

/** A request of an object for a bookmark of its history, or for a restore. The answer is a bookmark. */
export type BookmarkOrder =
  | { of: "now" }
  | { of: "time"; ms: number }
  /** Restores the object at its next start. The returned bookmark undoes the restore. */
  | { of: "restore"; bookmark: string };

/** How an attempt ended. `idle`: the object has no alarm that is due. After `failed` the alarm is still set. */
export interface AlarmOutcome extends AlarmNotice {
  outcome: "idle" | "done" | "failed";
}

/** A Durable Object as a script's wrapper names it. The gateway checks it against the binding. */
export interface ObjectReference {
  /** 64 hexadecimal digits. */
  id: string;
  /** The name that the id was made of, if it is known. */
  name?: string;
  jurisdiction?: string;
}

/** A Durable Object and its class, as the gateway sends them to the object's cell. */
export interface ObjectAddress extends ObjectReference {
  /** The id of its namespace. */
  namespace: string;
  className: string;
  isSqlite: boolean;
  /** Increases with each deployment: an object never goes back to an older version. */
  serial: number;
  /** Time that a busy object may go on with its older version. */
  delayMs: number;
  /** With "." and a number, the token of a run that no request began, such as the run of a WebSocket message. */
  standing: string;
  /** The object's data is restored before its next instance starts, for which the host asks the gateway. */
  isRestored?: boolean;
}

/** A method call or an event for an object, with the run that it belongs to. */
export interface ObjectEvent {
  run: string;
  /** The id of the script's version. */
  script: string;
  object: ObjectAddress;
  /** Whether the run's logs are collected. */
  isTraced?: boolean;
  /** As in RunMetadata, for calls that the run makes. */
  calls?: string;
  visitor?: string;
}

/** An object of the caller's cell, and the version of its script. */
export type ObjectPlace = Pick<ObjectEvent, "script" | "object">;

/** An object of the caller's cell, which the gateway lets the caller's script call without asking for each call. */
export interface ObjectGrant extends ObjectPlace {
  /** Number of calls that a run of the object may make in the cell before it asks the gateway. */
  lot: number;
}

/** The call in a cell that began a run of an object: the calling run, its binding and the called object. */
export interface LocalCall {
  run: string;
  binding: string;
  /** JSON of ObjectReference. */
  reference: string;
}

/** Requests and method calls that wait for one object at the same time, and the public text for a further one. */
export const objectQueuedMax = 1000;
export const tooManyQueuedText = "Durable Object is overloaded. Too many requests queued.";

/** Metadata of a fetch of an object, from the caller's wrapper to the system worker. */
export interface ObjectFetchMetadata {
  selvedgeRun: string;
  binding: string;
  /** JSON of ObjectReference. */
  reference: string;
}

/**
 * The gateway's answer to a method call of an object: the event itself if the object is in the caller's cell, else
 * the slot of the object's cell and the token for it.
 */
export type ObjectRoute = { event: ObjectEvent } | { slot: number; token: string };

/** Metadata of a dispatch, from the dispatcher's wrapper to the system worker. */
export interface DispatchMetadata {
  selvedgeRun: string;
  binding: string;
  /** JSON: the name of the script, and its limits. */
  options: string;
  /** JSON: parameters of the outbound script; empty without any. */
  outbound: string;
}

/** Attaches metadata to a fetch inside a cell. */
export const withMetadata = (cf: RunMetadata | DispatchMetadata | ObjectFetchMetadata): RequestInit =>
  ({ __proto__: null, cf }) as unknown as RequestInit;

/** Dispatches to a script inside a cell since the gateway asked last. `lastFault`: name and message of an exception. */
export interface DispatchCount {
  requests: number;
  faults: number;
  lastFault?: string;
}

/** A cell's answer about its dispatches: counts by the ids of scripts, and the ids that each given run dispatched to. */
export interface CountedDispatches {
  scripts: [id: string, count: DispatchCount][];
  /** For each run, separated by spaces. */
  targets: string[];
}
