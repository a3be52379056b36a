import { firstIdAt } from "../../control/audit/entry-id.ts";
import { listBetween, type AuditEntry } from "../../control/audit/store.ts";
import { onOneNode } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { clock } from "../../platform/timers/clock.ts";
import type { Collector, Receiver } from "./collection/collector.ts";
import type { LogpushJobs } from "./jobs.ts";
import type { LogSpool } from "./spool/spool.ts";

const rowsMax = 1000;
/**
 * How old an entry must be before it is read. Ids of entries grow with time, but an entry may be committed
 * later than entries with higher ids: on PostgreSQL, other nodes' transactions may take as long as their
 * queries.
 */
const settledMs = { sqlite: 3000, postgres: 60_000 };

/**
 * Writes new entries of the audit log to spools, on one node at a time. No entry is lost, because the log is
 * in the database, and the position in it is stored only after the entries are in a spool. Jobs of an account
 * at one position share one reading.
 */
export class AuditExporter {
  readonly #storage: Storage;
  readonly #jobs: LogpushJobs;
  readonly #spool: LogSpool;
  readonly #collectors: readonly Collector<AuditEntry>[];

  constructor(
    storage: Storage,
    jobs: LogpushJobs,
    spool: LogSpool,
    collectors: readonly Collector<AuditEntry>[],
  ) {
    this.#storage = storage;
    this.#jobs = jobs;
    this.#spool = spool;
    this.#collectors = collectors;
  }

  async tick(): Promise<void> {
    const receivers = this.#collectors.flatMap((collector) => [...collector.receivers]);
    if (receivers.length === 0) return;
    await onOneNode(this.#storage, "logpush", async () => {
      const cursors = await this.#jobs.cursors();
      const before = firstIdAt(clock.now() - settledMs[this.#storage.engine]);
      const groups = Map.groupBy(receivers, ({ job }) => {
        const after = cursors.get(job.id) ?? firstIdAt(job.createdOn);
        return `${job.accountId} ${after}`;
      });
      const faults: unknown[] = [];
      for (const [group, together] of groups) {
        const [accountId, after] = group.split(" ") as [string, string];
        // The export of a job that changes meanwhile fails, and holds up no other account.
        await this.#exportTo(together, accountId, { after, before }).catch((error: unknown) =>
          faults.push(error),
        );
      }
      if (faults.length > 0) throw faults[0];
    });
  }

  async #exportTo(
    receivers: readonly Receiver<AuditEntry>[],
    accountId: string,
    { after, before }: { after: string; before: string },
  ): Promise<void> {
    let position = after;
    for (;;) {
      // A later call reads the entries for jobs without room.
      const ready = receivers.filter(({ job }) => this.#spool.hasRoom(job));
      if (ready.length === 0) return;
      const rows = await listBetween(this.#storage.read, accountId, {
        after: position,
        before,
        limit: rowsMax,
      });
      if (rows.length === 0) return;
      await Promise.all(
        ready.map(async ({ recordOf, writer }) => writer.write(rows.flatMap((row) => recordOf(row) ?? []))),
      );
      position = rows.at(-1)!.id;
      await this.#jobs.setCursor(
        ready.map(({ job }) => job),
        position,
      );
      // A job that had no room is at another position now.
      if (rows.length < rowsMax || ready.length < receivers.length) return;
    }
  }
}
