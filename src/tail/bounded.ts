import type { TailEvent } from "./event.ts";

/** Tells of runs as JSON while there is room; what is more is left out, and how much that was is told when there is room again. */
export function bounded(hasRoom: () => boolean, write: (text: string) => void): (event: TailEvent) => void {
  let dropped = 0;
  return (event) => {
    if (!hasRoom()) {
      if (dropped === 0)
        write(notice("overload", "There is more than you take: some of it is left out from here on."));
      dropped += 1;
      return;
    }
    if (dropped > 0)
      write(notice("overload-stop", `${dropped} runs were left out. From here on it is whole again.`));
    dropped = 0;
    write(JSON.stringify(event));
  };
}

const notice = (type: "overload" | "overload-stop", message: string): string =>
  JSON.stringify({
    outcome: "ok",
    scriptName: null,
    event: { type, message },
    eventTimestamp: Date.now(),
    logs: [],
    exceptions: [],
    diagnosticsChannelEvents: [],
  });
