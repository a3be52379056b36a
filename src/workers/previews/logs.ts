import type { IncomingMessage, ServerResponse } from "node:http";
import { readBytes } from "../../control/api/body.ts";
import { readObject } from "../../sandbox/gateway/cell-messages.ts";
import { readCollected } from "../tail/collected.ts";
import type { TailException, TailLog } from "../tail/event.ts";
import { previewLimits } from "./limits.ts";

/** The logs of a run, which its isolate sends while it runs, and its exceptions after the answer. Hostile input. */
export class PreviewLogs {
  readonly logs: TailLog[] = [];
  readonly exceptions: TailException[] = [];
  /** Whether logs were dropped. */
  isTruncated = false;
  /** Resolves when the handler, and the work that it passed to `waitUntil`, have ended. */
  readonly whole: Promise<void>;
  readonly #end: () => void;
  #bytes = 0;
  #messageBytes = 0;
  #hasEnded = false;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.whole = promise;
    this.#end = resolve;
  }

  /** Receives a message of worker/console.ts. */
  async collect(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isTooMuch = this.#messageBytes > previewLimits.logMessagesBytesMax;
    if (isTooMuch) this.isTruncated = true;
    if (isTooMuch || this.#hasEnded) request.resume();
    else await this.#take(request);
    response.writeHead(204).end();
    if (this.#hasEnded) this.#end();
  }

  async #take(request: IncomingMessage): Promise<void> {
    try {
      const bytes = await readBytes(request, previewLimits.logMessageBytesMax);
      this.#messageBytes += bytes.length;
      const text = Buffer.from(bytes).toString();
      this.#hasEnded ||= readObject(text, "what was logged")["isPart"] !== true;
      const { logs, exceptions, truncated } = readCollected(text);
      this.exceptions.push(...exceptions);
      this.isTruncated ||= truncated;
      for (const log of logs) this.#add(log);
    } catch {
      this.isTruncated = true; // malformed, or too long
      this.#messageBytes += previewLimits.logMessageBytesMax;
    }
  }

  #add(log: TailLog): void {
    this.#bytes += Buffer.byteLength(JSON.stringify(log));
    if (this.logs.length < previewLimits.logsMax && this.#bytes <= previewLimits.logBytesMax)
      this.logs.push(log);
    else this.isTruncated = true;
  }
}
