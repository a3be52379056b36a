/** What an instance can be; the first five are not final. */
export const statuses = [
  "queued",
  "running",
  "waiting",
  "waitingForPause",
  "paused",
  "complete",
  "errored",
  "terminated",
] as const;
export type Status = (typeof statuses)[number];
export const finalStatuses: readonly Status[] = ["complete", "errored", "terminated"];
export const isFinal = (status: Status): boolean => finalStatuses.includes(status);

/** What can happen to an instance. */
export const inputs = [
  "slot",
  "suspend",
  "wake",
  "return",
  "throw",
  "lost",
  "refused",
  "pause",
  "resume",
  "terminate",
  "restart",
  "event",
] as const;
export type Input = (typeof inputs)[number];

/** What the engine must do when an instance moves. */
export type Effect =
  /** run the class from its journal */
  | "dispatch"
  /** take the running segment's right to write */
  | "fence"
  /** tell the segment to begin no step, and to end when none runs */
  | "hold"
  /** take that back */
  | "release"
  /** wait for a concurrency slot before instances that never ran */
  | "enqueueWoken"
  /** wait for a concurrency slot behind all others */
  | "enqueueFresh"
  /** leave the queue */
  | "dequeue"
  /** remember the next due time */
  | "armTimer"
  /** forget it */
  | "disarmTimer"
  /** remember when the clocks stopped */
  | "stopClocks"
  /** move every pending due time by the time that the clocks stood */
  | "startClocks"
  /** drop the journal, the events and the outcome */
  | "wipe"
  /** keep the outcome until the retention is over */
  | "expire";

export type Refusal = "cannotPause" | "cannotResume" | "cannotTerminate" | "inFiniteState";
export type Move = { to: Status; effects: readonly Effect[] } | { refuse: Refusal };

const to = (status: Status, ...effects: Effect[]): Move => ({ to: status, effects });
const refuse = (refusal: Refusal): Move => ({ refuse: refusal });
type Row = Record<Status, Move | undefined>;
/** An input that only some statuses know. Anywhere else it comes too late, from a fenced segment, and means nothing. */
const only = (row: Partial<Row>): Row => ({ ...nowhere, ...row });
const everywhere = (move: (status: Status) => Move): Row =>
  Object.fromEntries(statuses.map((status) => [status, move(status)])) as Row;
const nowhere: Row = Object.fromEntries(statuses.map((status) => [status, undefined])) as Row;
const whenFinal = (refusal: Refusal): Partial<Row> =>
  Object.fromEntries(finalStatuses.map((status) => [status, refuse(refusal)]));

/** Where it comes to an end from wherever it is. */
const endAs = (status: Status): Partial<Row> => ({
  queued: to(status, "dequeue", "expire"),
  running: to(status, "fence", "expire"),
  waiting: to(status, "disarmTimer", "expire"),
  waitingForPause: to(status, "fence", "expire"),
  paused: to(status, "expire"),
});

/** The whole state machine: for each input, where each status goes. docs/reference/workflow-states.md is printed from it. */
export const transitions: Readonly<Record<Input, Row>> = {
  slot: only({ queued: to("running", "dispatch") }),
  suspend: only({
    running: to("waiting", "fence", "armTimer"),
    waitingForPause: to("paused", "fence", "stopClocks"),
  }),
  wake: only({ waiting: to("queued", "disarmTimer", "enqueueWoken") }),
  return: only({
    running: to("complete", "fence", "expire"),
    waitingForPause: to("complete", "fence", "expire"),
  }),
  throw: only({
    running: to("errored", "fence", "expire"),
    waitingForPause: to("errored", "fence", "expire"),
  }),
  lost: only({
    running: to("queued", "fence", "enqueueWoken"),
    waitingForPause: to("paused", "fence", "stopClocks"),
  }),
  refused: {
    ...everywhere(() => to("errored", "expire")), // it had ended, and its end is what is refused
    ...endAs("errored"),
  },
  pause: {
    ...nowhere,
    queued: to("paused", "dequeue", "stopClocks"),
    running: to("waitingForPause", "hold"),
    waiting: to("paused", "disarmTimer", "stopClocks"),
    waitingForPause: to("waitingForPause"),
    paused: to("paused"),
    ...whenFinal("cannotPause"),
  },
  resume: {
    ...nowhere,
    queued: to("queued"),
    running: to("running"),
    waiting: to("waiting"),
    waitingForPause: to("running", "release"),
    paused: to("queued", "startClocks", "enqueueWoken"),
    ...whenFinal("cannotResume"),
  },
  terminate: {
    ...nowhere,
    ...endAs("terminated"),
    ...whenFinal("cannotTerminate"),
  },
  restart: everywhere((status) =>
    status === "queued"
      ? to("queued", "dequeue", "wipe", "enqueueFresh")
      : status === "running" || status === "waitingForPause"
        ? to("queued", "fence", "wipe", "enqueueFresh")
        : to("queued", "disarmTimer", "wipe", "enqueueFresh"),
  ),
  event: { ...everywhere((status) => to(status)), ...whenFinal("inFiniteState") },
};

/** Where an input takes an instance; undefined when it comes too late to mean anything. */
export const transition = (status: Status, input: Input): Move | undefined => transitions[input][status];

/** Statuses that hold one of the account's concurrency slots. */
export const holdsSlot = (status: Status): boolean => status === "running" || status === "waitingForPause";
