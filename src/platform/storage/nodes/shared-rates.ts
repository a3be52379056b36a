import { sql } from "kysely";
import type { Logger } from "pino";
import { endsWithin } from "../../util/ends-within.ts";
import { repeat } from "../../util/repeat.ts";
import type { Storage } from "../storage.ts";

/** A limit whose calls are counted over all nodes. */
export interface SharedLimit {
  /** The weight of a call until the next exchange: the number of live nodes. */
  readonly weight: number;
  /** Reports to other nodes the calls that were counted here, times the weight. A negative count takes calls back. */
  note(key: string, calls: number): void;
}

/** The limit of an installation with one node. */
export const ownLimit: SharedLimit = { weight: 1, note: () => {} };

interface Total {
  calls: number;
  /** The estimated calls of other nodes since the last exchange: this node's own calls, once for each other node. */
  surplus: number;
  usedAtMs: number;
}

/** By run of another node: the text of its row, and the totals that it contains. */
type Seen = Map<string, { text: string; totals: Record<string, number> }>;

type Correct = (key: string, calls: number) => void;

const exchangeMs = 1000;
const stopMsMax = 2000;
/** Keys are forgotten after this time without calls, which is longer than the window of any limit. */
const keptMs = 2 * 3_600_000;
const keysMax = 5000;

/**
 * Exchanges the counts of rate limits between nodes on PostgreSQL, each second while there are several.
 * Between two exchanges a node counts each call once for every live node, as if all of them had as many
 * calls. Then it replaces this estimate by the others' real counts. So all nodes together hardly exceed a
 * limit, and a client that uses only one node has nearly the whole limit after some seconds.
 */
export class SharedRates {
  readonly #storage: Storage;
  readonly #node: { readonly id: string; readonly run: string; readonly live: number };
  readonly #logger: Logger;
  readonly #corrections = new Map<string, Correct>();
  /** By name of the limit and key. The most recently used comes last. */
  readonly #totals = new Map<string, Total>();
  #seen: Seen = new Map();
  #isChanged = false;
  #hasBaseline = false;
  #stop: (() => Promise<void>) | undefined;

  constructor(storage: Storage, node: { id: string; run: string; live: number }, logger: Logger) {
    this.#storage = storage;
    this.#node = node;
    this.#logger = logger;
  }

  /** `name` is the same on all nodes. `correct` adds calls to what is counted for a key, or takes them back. */
  share(name: string, correct: Correct): SharedLimit {
    if (this.#storage.engine === "sqlite") return ownLimit;
    this.#corrections.set(name, correct);
    const node = this.#node;
    return {
      get weight() {
        return node.live;
      },
      note: (key, calls) => {
        if (node.live > 1) this.#note(`${name} ${key}`, calls);
      },
    };
  }

  start(): void {
    if (this.#storage.engine === "sqlite") return;
    this.#stop = repeat(
      async () => {
        if (this.#node.live > 1) await this.exchange();
      },
      { everyMs: exchangeMs },
      { logger: this.#logger, message: "counts of rate limits could not be exchanged" },
    );
  }

  async stop(): Promise<void> {
    // An exchange with a database that hangs would last for as long as its timeout.
    if (this.#stop !== undefined) await endsWithin(stopMsMax, this.#stop());
  }

  #note(key: string, calls: number): void {
    const { calls: before, surplus } = this.#totals.get(key) ?? { calls: 0, surplus: 0 };
    this.#totals.delete(key);
    this.#totals.set(key, {
      calls: before + calls,
      surplus: surplus + calls * (this.#node.live - 1),
      usedAtMs: Date.now(),
    });
    this.#isChanged = true;
  }

  async exchange(): Promise<void> {
    await this.#publish();
    for (const [key, total] of this.#totals) {
      if (total.surplus !== 0) this.#correct(key, -total.surplus);
      total.surplus = 0;
    }
    await this.#readOthers();
  }

  async #publish(): Promise<void> {
    if (!this.#isChanged) return;
    const oldestMs = Date.now() - keptMs;
    for (const [key, { usedAtMs }] of this.#totals) {
      if (usedAtMs >= oldestMs && this.#totals.size <= keysMax) break;
      this.#totals.delete(key);
    }
    const totals = JSON.stringify(
      Object.fromEntries([...this.#totals].map(([key, { calls }]) => [key, calls])),
    );
    this.#isChanged = false;
    try {
      await sql`insert into node_rates (node, run, totals) values (${this.#node.id}, ${this.#node.run}, ${totals})
        on conflict (node) do update set run = excluded.run, totals = excluded.totals`.execute(
        this.#storage.read,
      );
    } catch (error) {
      this.#isChanged = true;
      throw error;
    }
  }

  async #readOthers(): Promise<void> {
    const { rows } = await sql<{ run: string; totals: string }>`
      select run, totals from node_rates where node <> ${this.#node.id} limit 1000`.execute(
      this.#storage.read,
    );
    const seen: Seen = new Map();
    for (const { run, totals: text } of rows) {
      const before = this.#seen.get(run);
      if (before?.text === text) {
        seen.set(run, before);
        continue;
      }
      const totals = JSON.parse(text) as Record<string, number>;
      seen.set(run, { text, totals });
      // Calls before this node joined belong to windows that are over, or nearly.
      if (before === undefined && !this.#hasBaseline) continue;
      for (const [key, calls] of Object.entries(totals)) {
        const more = calls - (before?.totals[key] ?? 0);
        if (more !== 0) this.#correct(key, more);
      }
    }
    this.#seen = seen;
    this.#hasBaseline = true;
  }

  #correct(key: string, calls: number): void {
    const end = key.indexOf(" ");
    this.#corrections.get(key.slice(0, end))?.(key.slice(end + 1), calls);
  }
}
