import type { TailEvent } from "./event.ts";
import { clock } from "../../platform/timers/clock.ts";

/**
 * Sends events as JSON while there is room. Dropped events are counted, and the number is sent when there is
 * room again.
 */
export function bounded(hasRoom: () => boolean, write: (text: string) => void): (event: TailEvent) => void {
  let dropped = 0;
  return (event) => {
    if (!hasRoom()) {
      if (dropped === 0)
        write(notice("overload", "You receive events too slowly: some events are dropped from here on."));
      dropped += 1;
      return;
    }
    if (dropped > 0)
      write(notice("overload-stop", `${dropped} events were dropped. All events are sent from here on.`));
    dropped = 0;
    write(JSON.stringify(event));
  };
}

const notice = (type: "overload" | "overload-stop", message: string): string =>
  JSON.stringify({
    outcome: "ok",
    scriptName: null,
    event: { type, message },
    eventTimestamp: clock.now(),
    logs: [],
    exceptions: [],
    diagnosticsChannelEvents: [],
  });
