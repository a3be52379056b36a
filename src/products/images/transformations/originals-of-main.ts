import { LRUCache } from "lru-cache";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { entriesMax } from "../../../platform/util/loading-cache.ts";
import { AnsweredElsewhere } from "../delivery/delivery.ts";
import { StoredGone } from "../delivery/respond.ts";
import {
  originalKey,
  type FreshOriginal,
  type Original,
  type Originals,
  type WantedOriginal,
} from "./originals.ts";

const callName = "original of a picture";
const knownMax = 20_000;
/** An edge process asks again after so long, since main fetches a picture again when its file was removed. */
const knownMs = 10_000;

/** In main: sends edge processes the pictures of origins that are fresh. */
export const serveOriginals = (calls: ProcessCalls, originals: Originals): void =>
  calls.serve<{ key: string }>(callName, async ({ key }, { response }) => {
    const { original, freshUntil } = (await originals.known(key)) ?? {};
    response.end(JSON.stringify(original === undefined ? null : { original, freshUntil }));
  });

/** In edge processes: the pictures of origins that main has. Main answers requests for others, and fetches them. */
export class OriginalsOfMain implements Pick<Originals, "use"> {
  readonly #calls: ProcessCalls;
  readonly #known = new LRUCache<string, FreshOriginal>({ ...entriesMax(knownMax) });

  constructor(calls: ProcessCalls) {
    this.#calls = calls;
  }

  async use<T>(wanted: WantedOriginal, use: (original: Original) => Promise<T>): Promise<T> {
    const key = originalKey(wanted);
    const known = this.#known.get(key);
    const original =
      known !== undefined && known.freshUntil > clock.now() ? known.original : await this.#ask(key);
    try {
      return await use(original);
    } catch (error) {
      if (!(error instanceof StoredGone)) throw error;
      this.#known.delete(key);
      throw new AnsweredElsewhere();
    }
  }

  async #ask(key: string): Promise<Original> {
    const found = await this.#calls.ask<FreshOriginal | null>(callName, { key }).catch(() => null);
    if (found === null) throw new AnsweredElsewhere();
    const freshUntil = Math.min(found.freshUntil, clock.now() + knownMs);
    this.#known.set(key, { ...found, freshUntil });
    return found.original;
  }
}
