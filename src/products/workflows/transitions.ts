/** Statuses of an instance; the first five are not final. */
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
/** Statuses in which an instance has ended. */
export const finalStatuses: readonly Status[] = ["complete", "errored", "terminated"];
/** Whether an instance with this status does nothing more. */
export const isFinal = (status: Status): boolean => finalStatuses.includes(status);

/** Events that change the status of an instance. */
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

/** Actions of the engine when an instance changes its status. */
export type TransitionEffect =
  /** start an invocation from the journal */
  | "dispatch"
  /** revoke the running invocation's right to write */
  | "fence"
  /** tell the invocation to start no more steps, and to end once none runs */
  | "hold"
  /** cancel a hold */
  | "release"
  /** wait for a concurrency slot before instances that never ran */
  | "enqueueWoken"
  /** wait for a concurrency slot behind all others */
  | "enqueueFresh"
  /** leave the queue */
  | "dequeue"
  /** remember the next due time */
  | "armTimer"
  /** forget the next due time */
  | "disarmTimer"
  /** remember when the pause began */
  | "stopClocks"
  /** postpone every pending due time by the length of the pause */
  | "startClocks"
  /** drop the journal, the events and the outcome */
  | "wipe"
  /** keep the outcome until the retention is over */
  | "expire";

export type TransitionRefusal = "cannotPause" | "cannotResume" | "cannotTerminate" | "inFiniteState";
export type Move = { to: Status; effects: readonly TransitionEffect[] } | { refuse: TransitionRefusal };

const to = (status: Status, ...effects: TransitionEffect[]): Move => ({ to: status, effects });
const refuse = (refusal: TransitionRefusal): Move => ({ refuse: refusal });
type Transitions = Record<Status, Move | undefined>;
/**
 * An input for some statuses only. In any other status it comes too late, from a fenced invocation, and is
 * ignored.
 */
const only = (row: Partial<Transitions>): Transitions => ({ ...nowhere, ...row });
const everywhere = (move: (status: Status) => Move): Transitions =>
  Object.fromEntries(statuses.map((status) => [status, move(status)])) as Transitions;
const nowhere: Transitions = Object.fromEntries(statuses.map((status) => [status, undefined])) as Transitions;
const whenFinal = (refusal: TransitionRefusal): Partial<Transitions> =>
  Object.fromEntries(finalStatuses.map((status) => [status, refuse(refusal)]));

/** Ends the instance from any status. */
const endAs = (status: Status): Partial<Transitions> => ({
  queued: to(status, "dequeue", "expire"),
  running: to(status, "fence", "expire"),
  waiting: to(status, "disarmTimer", "expire"),
  waitingForPause: to(status, "fence", "expire"),
  paused: to(status, "expire"),
});

/**
 * The whole state machine: the next status for each input and status. docs/reference/workflow-states.md is
 * generated from it.
 */
export const transitions: Readonly<Record<Input, Transitions>> = {
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
    ...everywhere(() => to("errored", "expire")), // the instance had ended, and the database refuses its end
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

/** The next status and effects; undefined when the input came too late and is ignored. */
export const transition = (status: Status, input: Input): Move | undefined => transitions[input][status];

/** Statuses that hold one of the account's concurrency slots. */
export const holdsSlot = (status: Status): boolean => status === "running" || status === "waitingForPause";
