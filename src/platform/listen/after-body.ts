import type { IncomingMessage } from "node:http";
import { awaitsContinue } from "./continue.ts";

/** The same times as nginx's lingering_time and lingering_timeout. */
const lingerMs = 30_000;
const lingerIdleMs = 5000;

/**
 * Discards the unread rest of a request's body. Calls back when the body has ended, after 5 seconds without
 * data, or after 30 seconds. Closing at once would reset the connection of a client that is still sending,
 * which would then miss the response. A client that waits for `100 Continue` sends nothing.
 */
export function afterBody(request: IncomingMessage, done: () => void): void {
  if (request.complete || request.destroyed || awaitsContinue(request)) {
    done();
    return;
  }
  const startedAt = performance.now();
  const finish = (): void => {
    clearTimeout(idle);
    request.off("end", finish).off("close", finish).off("data", goOn);
    done();
  };
  const goOn = (): void => {
    if (performance.now() - startedAt > lingerMs) finish();
    else idle.refresh();
  };
  const idle = setTimeout(finish, lingerIdleMs);
  request.on("end", finish).on("close", finish).on("error", finish).on("data", goOn);
  request.resume();
}
