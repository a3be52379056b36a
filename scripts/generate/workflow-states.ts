import {
  inputs,
  statuses,
  transitions,
  type TransitionEffect,
  type Move,
} from "../../src/products/workflows/transitions.ts";

const meanings: Record<(typeof inputs)[number], string> = {
  slot: "a concurrency slot is free",
  suspend: "every running step has ended; only sleeps and waits are left",
  wake: "a sleep, a retry delay or a wait ends, or an event arrives",
  return: "`run()` returned",
  throw: "`run()` threw",
  lost: "the cell or the node of the instance died",
  refused: "the database permanently rejects a write of the instance",
  pause: "`pause`",
  resume: "`resume`",
  terminate: "`terminate`",
  restart: "`restart`",
  event: "an event is sent to the instance",
};

const effects: Record<TransitionEffect, string> = {
  dispatch: "run the class from its journal",
  fence: "ignore all further messages of the running invocation",
  hold: "start no further step",
  release: "allow steps to start again",
  enqueueWoken: "queue for a slot, ahead of instances that have not run yet",
  enqueueFresh: "queue for a slot, behind all others",
  dequeue: "remove from the queue",
  armTimer: "set the timer for the next sleep, retry or timeout",
  disarmTimer: "clear the timer",
  stopClocks: "stop the clocks of sleeps, retries and waits",
  startClocks: "restart these clocks; due times move by the length of the pause",
  wipe: "delete the journal, the events and the outcome",
  expire: "keep the outcome until the retention ends",
};

const refusals = {
  cannotPause: "refused: 10401 `cannot_pause`",
  cannotResume: "refused: 10401 `cannot_resume`",
  cannotTerminate: "refused: 10401 `cannot_terminate`",
  inFiniteState: "refused: 10402 `in_finite_state`",
};

function cell(move: Move | undefined): string {
  if (move === undefined) return "";
  if ("refuse" in move) return refusals[move.refuse];
  return move.effects.length === 0 ? move.to : `**${move.to}**: ${move.effects.join(", ")}`;
}

/** The text of docs/reference/workflow-states.md, made from the transition table of the engine. */
export function workflowStatesPage(): string {
  const row = (name: string, cells: readonly string[]): string => `| ${[name, ...cells].join(" | ")} |\n`;
  return `# States of workflow instances

\`npm run generate\` makes this page from \`src/products/workflows/transitions.ts\`, the table that the
engine uses. Each row is an event in the life of an instance, each column is the current status, and each cell
gives the next status and the effects. An empty cell means that the event arrives too late and is ignored.

${row("", statuses)}${row(
    "---",
    statuses.map(() => "---"),
  )}${inputs
    .map((input) =>
      row(
        meanings[input],
        statuses.map((status) => cell(transitions[input][status])),
      ),
    )
    .join("")}
| effect | what the engine does |
| --- | --- |
${Object.entries(effects)
  .map(([effect, meaning]) => `| ${effect} | ${meaning} |\n`)
  .join("")}`;
}
