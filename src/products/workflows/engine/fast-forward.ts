import { randomInt } from "node:crypto";
import type { WorkflowEngine } from "./engine.ts";

const neverAgain = 2 ** 40;

/**
 * Brings the next due time of one instance nearer by at most `byMs`, as if the time had passed for it alone. Returns the
 * milliseconds that are left, and undefined if the instance waits for nothing.
 */
export async function fastForward(
  { state, operations }: WorkflowEngine,
  rid: number,
  byMs: number,
): Promise<number | undefined> {
  const left = await state.with(rid, async (instance) => {
    const { now } = state;
    const dueTimes = [...instance.history.entries.values()].flatMap(({ outcome, due }) =>
      outcome === undefined && due !== null && due > now ? [due] : [],
    );
    if (dueTimes.length === 0) return undefined;
    const ms = Math.min(byMs, Math.min(...dueTimes) - now);
    // A shift row is identified by its start, and applies to everything that is due after it.
    const shift = instance.record({
      kind: "shift",
      key: "",
      at: now,
      startedOn: -randomInt(1, neverAgain),
      due: -ms,
    });
    const { row, invocation } = instance;
    if (row.wakeOn !== null) row.wakeOn -= ms;
    for (const pending of invocation?.pending.values() ?? []) pending.due -= ms;
    await state.commit(instance, [shift, instance.update(now)]);
    return byMs - ms;
  });
  if (left !== undefined) await operations.due(rid);
  return left;
}
