import { setTimeout as delay } from "node:timers/promises";
import type { Core } from "./core.ts";
import { lookMs } from "./instances.ts";
import { isFinal, type Status } from "./transitions.ts";

/** To show an instance its whole journal is read, which may be long: a follower takes a tenth of the time at most. */
const restPerWork = 9;

/** Server-sent events of an instance: what `show` gives, whenever something of it has become durable. */
export function follow(
  core: Core,
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
        const changed = core.changes.next(rid, lookMs);
        let shown: Awaited<ReturnType<typeof show>>;
        try {
          shown = await show();
        } catch {
          // It is gone, and with it what could be told.
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
