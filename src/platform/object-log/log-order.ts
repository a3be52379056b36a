import type { Base } from "./bases.ts";
import { contentsOf, type Catalog } from "./catalog.ts";
import type { Entry } from "./segment.ts";
import type { Stamp } from "./stamps.ts";

/** A segment that was written to the archive. It belongs to the log when the order has it. */
export interface WrittenSegment {
  /** The expected number. */
  number: number;
  path: string;
  stamp: Stamp;
}

/** The right to add parts to a log that several nodes share. Without one, nothing may be added now. */
export type LogRight = number | undefined;

/** The parts of the log, and their order. The catalog knows a part when the promise resolves. */
export interface LogOrder {
  /** The right of what is read from now on; rejects if there is none. */
  right(): LogRight;
  /** Whether entries of a namespace belong to the log of this node. */
  isOwn(namespace: string): boolean;
  /** Whether this node removes old parts. */
  prunes(): boolean;
  add(segment: WrittenSegment, entries: readonly Entry[], right: LogRight): Promise<void>;
  addBase(base: Base, right: LogRight): Promise<void>;
  /** Its file is gone. */
  removeSegment(number: number): Promise<void>;
  removeBase(base: Base): Promise<void>;
}

/** The order of a log that one node writes: the numbers in the paths. */
export const ownOrder = (catalog: Catalog): LogOrder => ({
  right: () => undefined,
  isOwn: () => true,
  prunes: () => true,
  async add(segment, entries) {
    catalog.add(segment, contentsOf(entries));
  },
  async addBase(base) {
    catalog.addBase(base);
  },
  async removeSegment(number) {
    catalog.removeSegment(number);
  },
  async removeBase(base) {
    catalog.removeBase(base);
  },
});
