import type { Change, Storage } from "../storage/storage.ts";
import { Turns } from "../util/turns.ts";
import type { DnsRecord } from "./record.ts";
import { listInvolved } from "./store.ts";

/** What stands at names of a zone now that they were touched; no records where a name is gone. */
export interface RecordChange {
  zoneId: string;
  names: ReadonlyMap<string, readonly DnsRecord[]>;
  /** That the change gave the zone; 0 when it gave none. */
  serial: number;
}
/** What it does before it first awaits anything is done in the order of the changes; for the rest the writer waits, too. */
type RecordListener = (change: RecordChange) => Promise<void>;

/** Tells those who keep records in memory what has become of the names that were touched. It is read once for all of them. */
export class RecordChanges {
  readonly #storage: Storage;
  readonly #listeners: RecordListener[] = [];
  /** So that what was read first is not told last. */
  readonly #reading = new Turns();
  readonly #written = new WeakMap<Change, { records: readonly DnsRecord[]; write: number }>();
  #writes = 0;
  #lastTold = 0;

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(async (changes) => {
      const told = changes.filter(({ kind }) => kind === "dns_record" || kind === "dns_serial");
      for (const [zoneId, ofZone] of Map.groupBy(told, ({ parentId }) => parentId!))
        await this.#tell(zoneId, ofZone);
    });
  }

  onChange(listener: RecordListener): void {
    this.#listeners.push(listener);
  }

  /** Notes what a transaction leaves at a name, so that it need not be read again. To be called where it ends. */
  note(change: Change, records: readonly DnsRecord[]): void {
    // Elsewhere other nodes may write after it, and be heard of before it.
    if (this.#storage.engine === "sqlite") this.#written.set(change, { records, write: ++this.#writes });
  }

  /** Tells of names again, as something else about them has changed. */
  async tellAgain(zoneId: string, names: readonly string[]): Promise<void> {
    const changes = names.map((id): Change => ({ kind: "dns_record", id, parentId: zoneId }));
    await this.#tell(zoneId, changes);
  }

  async #tell(zoneId: string, changes: readonly Change[]): Promise<void> {
    const told = await this.#reading.take(async () => {
      const change = await this.#read(zoneId, changes);
      return this.#listeners.map((listener) => listener(change));
    });
    await Promise.all(told);
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
        // What was written later may have been told already.
        if (written === undefined || written.write < this.#lastTold) unknown.add(change.id);
        else this.#lastTold = written.write;
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
