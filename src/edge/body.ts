import type { IncomingMessage } from "node:http";

const lingerMs = 2000;

/**
 * Discards what nobody has read of a request's body, and calls back when it has ended or has had its time. Closing at
 * once would reset the connection under a visitor who is still sending, and take the answer away with it.
 */
export function afterBody(request: IncomingMessage, done: () => void): void {
  if (request.complete || request.destroyed) {
    done();
    return;
  }
  const finish = (): void => {
    clearTimeout(timer);
    request.off("end", finish).off("close", finish);
    done();
  };
  const timer = setTimeout(finish, lingerMs);
  request.on("end", finish).on("close", finish).on("error", finish);
  request.on("data", () => {});
}
