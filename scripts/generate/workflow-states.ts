import { inputs, statuses, transitions, type Effect, type Move } from "../../src/workflows/transitions.ts";

const meanings: Record<(typeof inputs)[number], string> = {
  slot: "a concurrency slot is free",
  suspend: "nothing of it runs, it only waits",
  wake: "a sleep, a retry's delay or a wait is over, or an event has come",
  return: "`run()` returned",
  throw: "`run()` threw",
  lost: "its cell or its node died",
  refused: "the database refuses, for good, what it has to write",
  pause: "`pause`",
  resume: "`resume`",
  terminate: "`terminate`",
  restart: "`restart`",
  event: "an event is sent to it",
};

const effects: Record<Effect, string> = {
  dispatch: "run the class from its journal",
  fence: "what the running invocation still says counts no more",
  hold: "no further step begins",
  release: "steps may begin again",
  enqueueWoken: "wait for a slot, before instances that never ran",
  enqueueFresh: "wait for a slot, behind all others",
  dequeue: "leave the queue",
  armTimer: "remember when the next thing is due",
  disarmTimer: "forget it",
  stopClocks: "sleeps, retries and waits stand still",
  startClocks: "and go on, by as much later",
  wipe: "drop the journal, the events and the outcome",
  expire: "keep the outcome until the retention is over",
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

/** docs/reference/workflow-states.md, from the table that the engine runs by. */
export function workflowStatesPage(): string {
  const row = (name: string, cells: readonly string[]): string => `| ${[name, ...cells].join(" | ")} |\n`;
  return `# States of workflow instances

Made from \`src/workflows/transitions.ts\` by \`npm run generate\`: it is the table by which the engine runs. A row is what
happens to an instance, a column is the status that it is in, a cell is where it goes and what the engine does. An
empty cell is something that comes too late to mean anything.

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
