import { nothingToReload } from "../../platform/storage/changes/listeners.ts";
import type { Change, Storage } from "../../platform/storage/storage.ts";
import { Turns } from "../../platform/util/turns.ts";
import type { DnsRecord } from "./record.ts";
import { listInvolved } from "./store.ts";

/** The records at changed names of a zone, with an empty list for a name that no longer exists. */
export interface RecordChange {
  zoneId: string;
  names: ReadonlyMap<string, readonly DnsRecord[]>;
  /** The zone's serial after the change; 0 if the change did not raise it. */
  serial: number;
}
/**
 * The synchronous part of a listener runs in the order of the changes. The writer also waits for the
 * asynchronous part.
 */
type RecordListener = (change: RecordChange) => Promise<void>;

/**
 * Notifies components that keep records in memory of changed names. The records are read once for all
 * listeners.
 */
export class RecordChanges {
  readonly #storage: Storage;
  readonly #listeners: RecordListener[] = [];
  /** One read at a time, so that an older result is never delivered after a newer one. */
  readonly #reading = new Turns();
  readonly #written = new WeakMap<Change, { records: readonly DnsRecord[]; write: number }>();
  #writes = 0;
  #lastNotified = 0;

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(async (changes) => {
      const relevant = changes.filter(({ kind }) => kind === "dns_record" || kind === "dns_serial");
      for (const [zoneId, ofZone] of Map.groupBy(relevant, ({ parentId }) => parentId!))
        await this.#notify(zoneId, ofZone);
    }, nothingToReload);
  }

  /** Listeners must also reload the records that they keep, through `Storage.onChange`. */
  onChange(listener: RecordListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Notes the records that a transaction leaves at a name, which saves reading them again. Call it at the end
   * of the transaction.
   */
  note(change: Change, records: readonly DnsRecord[]): void {
    // With PostgreSQL, a later write of another node may be notified earlier.
    if (this.#storage.engine === "sqlite") this.#written.set(change, { records, write: ++this.#writes });
  }

  /** Notifies listeners of names again after a change outside their records. */
  async notifyAgain(zoneId: string, names: readonly string[]): Promise<void> {
    const changes = names.map((id): Change => ({ kind: "dns_record", id, parentId: zoneId }));
    await this.#notify(zoneId, changes);
  }

  async #notify(zoneId: string, changes: readonly Change[]): Promise<void> {
    const notified = await this.#reading.take(async () => {
      const change = await this.#read(zoneId, changes);
      return this.#listeners.map((listener) => listener(change));
    });
    await Promise.all(notified);
  }

  async #read(zoneId: string, changes: readonly Change[]): Promise<RecordChange> {
    const names = new Map<string, readonly DnsRecord[]>();
    const unknown = new Set<string>();
    let serial = 0;
    for (const change of changes) {
      if (change.kind === "dns_serial") serial = Math.max(serial, Number(change.id));
      else {
        const written = this.#written.get(change);
        names.set(change.id, written?.records ?? []);
        // A later write may have been delivered already.
        if (written === undefined || written.write < this.#lastNotified) unknown.add(change.id);
        else this.#lastNotified = written.write;
      }
    }
    if (unknown.size > 0) {
      const read = await listInvolved(this.#storage.read, zoneId, [], [...unknown]);
      const found = Map.groupBy(read, ({ name }) => name);
      for (const name of unknown) names.set(name, found.get(name) ?? []);
    }
    return { zoneId, names, serial };
  }
}
