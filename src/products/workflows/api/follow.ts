import { setTimeout as delay } from "node:timers/promises";
import type { EngineState } from "../engine/engine-state.ts";
import { lookMs } from "../instances.ts";
import { isFinal, type Status } from "../transitions.ts";

/**
 * Showing an instance reads its whole journal, which may be long: a follower spends at most a tenth of its
 * time on that.
 */
const restPerWork = 9;

/**
 * Server-sent events of an instance: the result of `show`, each time a change of the instance becomes
 * durable.
 */
export function follow(
  state: EngineState,
  rid: number,
  show: () => Promise<{ status: Status | "rollingBack" }>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let last = "";
  let restMs = 0;
  let isCancelled = false;
  return new ReadableStream({
    async pull(controller) {
      // oxlint-disable-next-line no-unmodified-loop-condition -- cancel() modifies it
      while (!isCancelled) {
        await delay(restMs, undefined, { ref: false });
        const startedAt = performance.now();
        const changed = state.changes.next(rid, lookMs);
        let shown: Awaited<ReturnType<typeof show>>;
        try {
          shown = await show();
        } catch {
          // The instance was removed.
          controller.enqueue(encoder.encode("event: deleted\ndata: {}\n\n"));
          controller.close();
          return;
        }
        const text = JSON.stringify(shown);
        restMs = (performance.now() - startedAt) * restPerWork;
        if (text !== last) {
          last = text;
          controller.enqueue(encoder.encode(`event: instance\ndata: ${text}\n\n`));
          if (shown.status !== "rollingBack" && isFinal(shown.status)) controller.close();
          return;
        }
        await changed;
      }
    },
    cancel() {
      isCancelled = true;
    },
  });
}
