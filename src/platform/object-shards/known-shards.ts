import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { syncPath } from "../storage/durability.ts";
import type { TakenShard } from "./lease.ts";

/**
 * The leases under which the files of shards on this disk were the newest: a file. A shard whose last lease is among them
 * has not been another node's since, so its files are kept.
 */
export class KnownShards {
  readonly #path: string;
  #leases: Record<string, number[]>;

  constructor(path: string) {
    this.#path = path;
    try {
      this.#leases = JSON.parse(readFileSync(path, "utf8")) as Record<string, number[]>;
    } catch {
      this.#leases = {}; // then everything comes from the log
    }
  }

  get all(): number[] {
    return Object.keys(this.#leases).map(Number);
  }

  isNewest({ shard, last }: TakenShard): boolean {
    return last === null || this.#leases[shard]?.includes(last) === true;
  }

  /** Notes that files of shards are the newest from now on. It is on disk when the promise resolves. */
  async note(taken: readonly TakenShard[], id: number): Promise<void> {
    // Until the database knows the new lease, the shard is still that of the last one.
    for (const each of taken)
      this.#leases[each.shard] = this.isNewest(each) && each.last !== null ? [each.last, id] : [id];
    const unfinished = `${this.#path}.new`;
    writeFileSync(unfinished, JSON.stringify(this.#leases), { mode: 0o600, flush: true });
    renameSync(unfinished, this.#path);
    await syncPath(dirname(this.#path));
  }
}
