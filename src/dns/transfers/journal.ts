import type { AnswerEntry } from "../name-server/zone/answer.ts";
import type { ServedZone } from "../name-server/zone/zone.ts";
import { entriesOf, soaEntry } from "./record.ts";

/**
 * The records that a change removed and added. Each list begins with the SOA record before or after the
 * change.
 */
export interface Difference {
  from: number;
  to: number;
  removed: readonly AnswerEntry[];
  added: readonly AnswerEntry[];
}

const differencesMax = 1000;
const recordsMax = 20_000;

/** The latest changes of a zone, for incremental transfers (RFC 1995). */
export class Journal {
  readonly #differences: Difference[] = [];
  #records = 0;

  /** Runs `change`, which changes the records of names, and records the difference. */
  follow(zone: ServedZone, names: readonly string[], change: () => void): void {
    const from = zone.configuration.serial;
    const before = entriesOf(zone, names);
    const soaBefore = soaEntry(zone);
    change();
    const after = entriesOf(zone, names);
    const to = zone.configuration.serial;
    if (before === undefined || after === undefined || !isNewer(to, from)) {
      this.clear();
      return;
    }
    const [known, present] = [new Set(before.map(keyOf)), new Set(after.map(keyOf))];
    this.#add({
      from,
      to,
      removed: [soaBefore, ...before.filter((entry) => !present.has(keyOf(entry)))],
      added: [soaEntry(zone), ...after.filter((entry) => !known.has(keyOf(entry)))],
    });
  }

  /** Drops all differences after a change of the whole zone, so that peers must transfer all of it. */
  clear(): void {
    this.#differences.length = 0;
    this.#records = 0;
  }

  /** The differences since a serial; undefined if they are not known. */
  since(serial: number): readonly Difference[] | undefined {
    const index = this.#differences.findIndex(({ from }) => from === serial);
    return index < 0 ? undefined : this.#differences.slice(index);
  }

  #add(difference: Difference): void {
    this.#differences.push(difference);
    this.#records += sizeOf(difference);
    while (this.#differences.length > differencesMax || this.#records > recordsMax) {
      const oldest = this.#differences.shift();
      if (oldest === undefined) return;
      this.#records -= sizeOf(oldest);
    }
  }
}

/** Serial arithmetic (RFC 1982). */
export const isNewer = (serial: number, than: number): boolean => ((serial - than) | 0) > 0;

const sizeOf = ({ removed, added }: Difference): number => removed.length + added.length;

const keyOf = ({ owner, set }: AnswerEntry): string =>
  `${set.type} ${set.ttl} ${owner.length} ${owner}${set.rdatas[0]!.toString("latin1")}`;
