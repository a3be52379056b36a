import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { noteUncaught } from "../../platform/util/uncaught.ts";
import type { AnswerCounts } from "./answer-counts.ts";
import type { ErrorLog } from "./answering.ts";
import type { OutwardCalls } from "./authority.ts";
import type { FromThread, ThreadOptions, ToThread } from "./thread.ts";
import type { Update } from "./update.ts";
import { moduleUrl } from "../../platform/util/module-url.ts";

/**
 * Threads that answer on one port, each with its own copy of the zones. The system distributes clients among
 * them.
 */
export class Threads {
  readonly #threads: Thread[];

  constructor(count: number, options: ThreadOptions, calls: OutwardCalls, logger: ErrorLog) {
    this.#threads = Array.from({ length: count }, () => new Thread(options, calls, logger));
  }

  /** Resolves once the queries of every thread see the update. */
  async apply(update: Update): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.do({ kind: "update", update })));
  }

  async listen(address: AddressInfo): Promise<AddressInfo> {
    for (const thread of this.#threads) await thread.do({ kind: "listen", address });
    return address;
  }

  async counts(): Promise<AnswerCounts[]> {
    const all = await Promise.all(this.#threads.map((thread) => thread.do({ kind: "counts" })));
    return all.filter((counts) => counts !== undefined) as AnswerCounts[];
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

interface AwaitedReply {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

class Thread {
  readonly #worker: Worker;
  /** Orders without a reply yet, oldest first. */
  readonly #waiting: AwaitedReply[] = [];
  #isGone = false;

  constructor(options: ThreadOptions, calls: OutwardCalls, logger: ErrorLog) {
    this.#worker = new Worker(moduleUrl("dns/name-server/thread"), { workerData: options, name: "dns" });
    this.#worker.on("message", (message: FromThread) => {
      if (message.kind === "done") this.#waiting.shift()?.resolve(message.value);
      else if (message.kind === "failed")
        this.#waiting.shift()?.reject(Object.assign(new Error(message.message), { code: message.code }));
      else if (message.kind === "want") calls.want(message.wanted);
      else if (message.kind === "transferred") calls.onTransfer(message.zoneId);
      else if (message.kind === "queries") calls.onQueries(message.queries);
      else if (message.kind === "uncaught") noteUncaught(message.as, new Error(message.text));
      else logger.error(message.details, message.message);
    });
    this.#worker.on("error", (error) => logger.error({ err: error }, "a thread of the name server failed"));
    // The system distributes its clients among the remaining threads.
    this.#worker.on("exit", () => {
      this.#isGone = true;
      for (const { resolve } of this.#waiting.splice(0)) resolve(undefined);
    });
  }

  async do(order: ToThread): Promise<unknown> {
    if (this.#isGone) return undefined;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(order, []);
    });
  }

  async close(): Promise<void> {
    await this.do({ kind: "close" });
    await this.#worker.terminate();
  }
}
