import type { Core } from "./core.ts";
import { isFinal, type Status } from "./transitions.ts";

/** Instances of other nodes tell nothing here: they are looked at again after this time. */
const lookMs = 1000;

/** Server-sent events of an instance: what `show` gives, whenever something of it has become durable. */
export function follow(
  core: Core,
  rid: number,
  show: () => Promise<{ status: Status | "rollingBack" }>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let wake = (): void => {};
  let stop = (): void => {};
  let last = "";
  return new ReadableStream({
    start() {
      const watchers = core.watchers.get(rid) ?? new Set();
      core.watchers.set(rid, watchers);
      const notify = (): void => wake();
      watchers.add(notify);
      stop = () => {
        watchers.delete(notify);
        if (watchers.size === 0) core.watchers.delete(rid);
        wake();
      };
    },
    async pull(controller) {
      for (;;) {
        const changed = new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, lookMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        let shown: Awaited<ReturnType<typeof show>>;
        try {
          shown = await show();
        } catch {
          // It is gone, and with it what could be told.
          controller.enqueue(encoder.encode("event: deleted\ndata: {}\n\n"));
          controller.close();
          stop();
          return;
        }
        const text = JSON.stringify(shown);
        if (text !== last) {
          last = text;
          wake();
          controller.enqueue(encoder.encode(`event: instance\ndata: ${text}\n\n`));
          if (shown.status !== "rollingBack" && isFinal(shown.status)) {
            controller.close();
            stop();
          }
          return;
        }
        await changed;
      }
    },
    cancel: () => stop(),
  });
}
