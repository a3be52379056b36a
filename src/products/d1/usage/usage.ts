import type { Storage } from "../../../platform/storage/storage.ts";
import { unwitnessed } from "../../../platform/storage/witness.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { findUsage, putUsage, type Figures, type Hours } from "./store-usage.ts";

const hourMs = 3_600_000;
/** The hours of the last day, including those in which it begins and ends. */
const hoursKept = 25;

/** Parses the figures in a response header. Undefined for an invalid text. */
export function readFigures(text: string): Figures | undefined {
  if (!/^\d{1,15}(,\d{1,15}){3}$/.test(text)) return undefined;
  return text.split(",").map(Number) as Figures;
}

/**
 * Counts the queries of each database and the rows that they read and write, by hour, for a day. The counts
 * are stored each minute and at the end; a `kill -9` loses at most the last minute.
 */
export class DatabaseUsage {
  readonly #storage: Storage;
  /** Counts that are not stored yet, by id of the database. */
  #fresh = new Map<string, Hours>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  note({ id }: { id: string }, figures: Figures): void {
    let hours = this.#fresh.get(id);
    if (hours === undefined) this.#fresh.set(id, (hours = {}));
    const hour = Math.floor(clock.now() / hourMs);
    hours[hour] = sum(hours[hour], figures);
  }

  /** The figures of the hours that began between two times, the oldest first. */
  async of(
    database: { id: string },
    fromMs: number,
    toMs: number,
  ): Promise<{ hourMs: number; figures: Figures }[]> {
    const hours = joined(await findUsage(this.#storage.read, database.id), this.#fresh.get(database.id));
    return Object.entries(hours)
      .map(([hour, figures]) => ({ hourMs: Number(hour) * hourMs, figures }))
      .filter((each) => each.hourMs >= fromMs && each.hourMs <= toMs);
  }

  /** Stores the new counts, except those of databases that were deleted meanwhile. */
  async store(isThere: (id: string) => boolean): Promise<void> {
    const fresh = this.#fresh;
    if (fresh.size === 0) return;
    this.#fresh = new Map();
    const first = Math.floor(clock.now() / hourMs) - hoursKept + 1;
    try {
      await this.#storage.write(async (trx) => {
        for (const [id, hours] of fresh) {
          if (!isThere(id)) continue;
          const all = Object.entries(joined(await findUsage(trx, id), hours));
          await putUsage(trx, id, Object.fromEntries(all.filter(([hour]) => Number(hour) >= first)));
        }
      }, unwitnessed);
    } catch (error) {
      for (const [id, hours] of fresh) this.#fresh.set(id, joined(hours, this.#fresh.get(id)));
      throw error;
    }
  }
}

const sum = (a: Figures = [0, 0, 0, 0], b: Figures): Figures => a.map((each, i) => each + b[i]!) as Figures;

function joined(a: Hours, b: Hours = {}): Hours {
  const all = { ...a };
  for (const [hour, figures] of Object.entries(b)) all[Number(hour)] = sum(all[Number(hour)], figures);
  return all;
}
