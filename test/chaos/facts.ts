import { setTimeout as delay } from "node:timers/promises";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { callerOf, everyWrite, type Call, type Writes } from "../helpers/writes.ts";
import { callMsMax, type ChaosNode } from "./platform.ts";
import type { Tally } from "./tally.ts";

/** Writes of every capability through one node, and what they have made. */
export class Facts {
  readonly #node: ChaosNode;
  readonly #made: Writes;
  readonly #tally: Tally;
  /** Of acknowledged writes: kind and path. */
  readonly paths: { kind: string; path: string }[] = [];
  readonly #messages = { sent: new Set<string>(), acknowledged: new Set<string>() };
  readonly #instances: string[] = [];
  /** Batches without an answer: they may have had their effect or not. */
  readonly unknownBatches: { kind: string; n: number }[] = [];
  #n = 0;

  private constructor(node: ChaosNode, made: Writes, tally: Tally) {
    this.#node = node;
    this.#made = made;
    this.#tally = tally;
  }

  static async of(node: ChaosNode, tally: Tally): Promise<Facts> {
    const png = await pngOf(fourColors(64, 48));
    const made = await everyWrite(callerOf(node.ready.api, callMsMax), node.ready.account_id, {
      png,
      largeBytes: 100_000,
      prefix: `facts-${node.name}`,
    });
    return new Facts(node, made, tally);
  }

  /** Writes in turn until the time is over. */
  async run(isOver: () => boolean, pauseMs: number): Promise<void> {
    for (;;) {
      for (const { kind, send, made } of this.#made.writes) {
        if (isOver()) return;
        const n = ++this.#n;
        if (kind === "message") this.#messages.sent.add(`message ${n}`);
        const { fate, answer } = await this.#tally.write(`${kind} at ${this.#node.name}`, () => send(n));
        if (fate === "acknowledged") {
          if (made !== undefined) this.paths.push({ kind, path: made(n, answer!) });
          if (kind === "message") this.#messages.acknowledged.add(`message ${n}`);
          if (kind === "instance") this.#instances.push(`${this.#made.workflow}/instances/i${n}`);
        } else if (fate === "unknown" && ["record batch", "values in bulk"].includes(kind))
          this.unknownBatches.push({ kind, n });
        await delay(pauseMs);
      }
    }
  }

  /** Pulls all messages; returns the acknowledged ones that are missing, and those that no call sent. */
  async messages(call: Call): Promise<{ lost: string[]; wrong: string[] }> {
    const pulled = new Set<string>();
    // Messages that a killed node had leased become visible again later, so an empty pull is no end.
    const { sent, acknowledged } = this.#messages;
    for (const end = performance.now() + 60_000; performance.now() < end;) {
      const { result } = await call("POST", `${this.#made.queue}/messages/pull`, { batch_size: 100 });
      const { messages } = result as { messages: { body: string }[] };
      for (const { body } of messages) pulled.add(body);
      if ([...acknowledged].every((body) => pulled.has(body)) && messages.length === 0) break;
      if (messages.length === 0) await delay(500);
    }
    return {
      lost: [...acknowledged].filter((body) => !pulled.has(body)),
      wrong: [...pulled].filter((body) => !sent.has(body)),
    };
  }

  /** Instances that do not complete. */
  async incomplete(call: Call): Promise<string[]> {
    const statusOf = async (path: string): Promise<string> =>
      ((await call("GET", path)).result as { status?: string } | null)?.status ?? "absent";
    let left = this.#instances;
    for (const end = performance.now() + 120_000; left.length > 0 && performance.now() < end;) {
      const statuses = await Promise.all(left.map(async (path) => ({ path, status: await statusOf(path) })));
      left = statuses.filter(({ status }) => status !== "complete").map(({ path }) => path);
      if (left.length > 0) await delay(1000);
    }
    return left;
  }

  /** Batches without an answer of which only a part is there. */
  async halves(call: Call): Promise<string[]> {
    const found: string[] = [];
    for (const { kind, n } of this.unknownBatches) {
      const isRecords = kind === "record batch";
      const parts = isRecords ? [1, 2, 3] : [1, 2];
      const isThere = await Promise.all(
        parts.map(async (i) => {
          if (!isRecords)
            return (await call("GET", `${this.#made.values}/values/bulk-${n}-${i}`)).status === 200;
          const name = `b${n}-${i}.facts-${this.#node.name}.example`;
          return (await call("GET", `${this.#made.records}?name=${name}`)).result.length === 1;
        }),
      );
      if (new Set(isThere).size > 1) found.push(`${kind} ${n}: ${isThere.join(", ")}`);
    }
    return found;
  }

  get instanceCount(): number {
    return this.#instances.length;
  }
}
