import type { Socket } from "node:net";

/** The head of an answer, for connections that Node's own server has handed over. */
export function answerHead(status: number, statusText: string, headers: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${statusText}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}

/** Passes on what one side sends. When that side is gone, the other still gets what was on its way to it. */
export function join(from: Socket, to: Socket, idleTimeoutMs: number): void {
  from.setTimeout(idleTimeoutMs, () => from.destroy());
  from.on("error", () => from.destroy());
  from.on("close", () => to.destroySoon());
  if (from.destroyed) to.destroySoon();
  else from.pipe(to);
}
