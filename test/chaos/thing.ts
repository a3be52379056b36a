import type { Answered, Call } from "../helpers/writes.ts";
import type { ChaosNode } from "./platform.ts";

/** The versions that look like the result of a read. Undefined: the answer does not show a version. */
export type Seen = { isOf: (version: number) => boolean; text: string } | undefined;

/** A way to read something at a node. */
export interface Channel {
  name: string;
  read(node: ChaosNode, call: Call): Promise<Seen>;
}

/** Something with versions 1, 2, 3 …, of which `write` makes the next. */
export interface Thing {
  name: string;
  /** Undefined if nothing changes it after its creation. */
  write: ((version: number, call: Call) => Promise<Answered>) | undefined;
  channels: readonly Channel[];
}

/** Makes a thing at its first version; throws if a step is refused. */
export type Kind = { name: string; make: (n: number, call: Call) => Promise<Thing> };

/** The knowledge of the writer of one thing. It sends one write at a time, so versions are in order. */
export class History {
  /** When the API acknowledged a version, of `performance.now()`. */
  readonly #acknowledged: { version: number; at: number }[] = [];
  /** Sent, and neither acknowledged nor refused. At most one: no write follows one with an unknown result. */
  #open: number | undefined;
  #last = 0;
  isOver = false;

  begin(): number {
    this.#open = ++this.#last;
    return this.#open;
  }

  acknowledge(): void {
    this.#acknowledged.push({ version: this.#open!, at: performance.now() });
    this.#open = undefined;
  }

  /** The write had certainly no effect. */
  refuse(): void {
    this.#open = undefined;
  }

  /** It is not known whether the write had its effect, or will have it. */
  giveUp(): void {
    this.isOver = true;
  }

  get acknowledged(): number {
    return this.#acknowledged.at(-1)!.version;
  }

  /** The newest version that was acknowledged at a time. 0: none. */
  newestAt(time: number): number {
    return this.#acknowledged.findLast(({ at }) => at <= time)?.version ?? 0;
  }

  /** For how long a newer version had been acknowledged at a time, if this was the newest seen. */
  lagMs(seen: NonNullable<Seen>, time: number): number {
    if (this.#open !== undefined && seen.isOf(this.#open)) return 0;
    const at = this.#acknowledged.findLastIndex(({ version }) => seen.isOf(version));
    const newer = this.#acknowledged[at + 1];
    return newer === undefined ? 0 : Math.max(0, time - newer.at);
  }

  /** Whether a version may be seen: it was acknowledged, or is open. */
  #mayBe(version: number): boolean {
    return version === this.#open || this.#acknowledged.some((each) => each.version === version);
  }

  /** How what was seen stands to the versions, if the read has to show at least `newest`. */
  judge(seen: NonNullable<Seen>, newest: number): "right" | "stale" | "wrong" {
    let isOld = false;
    for (let version = this.#last; version >= 0; version--) {
      if (!seen.isOf(version) || (version > 0 && !this.#mayBe(version))) continue;
      if (version >= newest) return "right";
      isOld = true;
    }
    return isOld ? "stale" : "wrong";
  }
}
