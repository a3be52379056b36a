import { logResource, type AuditLog } from "../../control/audit/api-v1.ts";
import { firstIdAt } from "../../control/audit/entry-id.ts";
import { listBetween } from "../../control/audit/store.ts";
import { onOneNode } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { clock } from "../../platform/timers/clock.ts";
import type { Collector, Receiver } from "./collector.ts";
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
 * in the database, and the position in it is stored only after the entries are in a spool.
 */
export class AuditFeed {
  readonly #storage: Storage;
  readonly #jobs: LogpushJobs;
  readonly #spool: LogSpool;
  readonly #collector: Collector<AuditLog>;

  constructor(storage: Storage, jobs: LogpushJobs, spool: LogSpool, collector: Collector<AuditLog>) {
    this.#storage = storage;
    this.#jobs = jobs;
    this.#spool = spool;
    this.#collector = collector;
  }

  async tick(): Promise<void> {
    const receivers = [...this.#collector.receivers];
    if (receivers.length === 0) return;
    await onOneNode(this.#storage, "logpush", async () => {
      for (const receiver of receivers) await this.#feed(receiver);
    });
  }

  async #feed({ job, recordOf, writer }: Receiver<AuditLog>): Promise<void> {
    let after = (await this.#jobs.cursorOf(job)) ?? firstIdAt(job.createdOn);
    const before = firstIdAt(clock.now() - settledMs[this.#storage.engine]);
    for (;;) {
      if (!this.#spool.hasRoom(job.id)) return; // a later call reads the entries
      const rows = await listBetween(this.#storage.read, job.accountId, { after, before, limit: rowsMax });
      if (rows.length === 0) return;
      await writer.write(rows.flatMap((row) => recordOf(logResource(row)) ?? []));
      after = rows.at(-1)!.id;
      await this.#jobs.setCursor(job, after);
      if (rows.length < rowsMax) return;
    }
  }
}
