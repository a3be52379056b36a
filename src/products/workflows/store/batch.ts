import type { EventRow, InstanceState, NewInstance } from "../instance.ts";
import type { JournalRow } from "./journal.ts";

/** One change to make durable. Changes that are appended together are committed together. */
export type InstanceChange =
  | { kind: "create"; instance: NewInstance }
  | { kind: "update"; rid: number; state: InstanceState }
  | { kind: "journal"; row: JournalRow }
  | { kind: "event"; row: EventRow }
  | { kind: "consume"; rid: number; number: number }
  /** Deletes the journal of earlier runs, and all events. */
  | { kind: "wipe"; rid: number; run: number }
  | { kind: "remove"; rid: number };

/** The writes of one transaction, by table. Later changes of a row replace earlier ones. */
export interface WriteBatch {
  creates: NewInstance[];
  updates: Map<number, InstanceState>;
  journal: JournalRow[];
  events: EventRow[];
  consumed: { rid: number; number: number }[];
  wipes: Map<number, number>;
  removes: Set<number>;
}

/** Merges changes in order, so that a store can run them table by table. */
export function merge(changes: Iterable<InstanceChange>): WriteBatch {
  const batch: WriteBatch = {
    creates: [],
    updates: new Map(),
    journal: [],
    events: [],
    consumed: [],
    wipes: new Map(),
    removes: new Set(),
  };
  for (const change of changes) {
    switch (change.kind) {
      case "create":
        batch.creates.push(change.instance);
        break;
      case "update":
        batch.updates.set(change.rid, change.state);
        break;
      case "journal":
        batch.journal.push(change.row);
        break;
      case "event":
        batch.events.push(change.row);
        break;
      case "consume":
        take(batch, change.rid, change.number);
        break;
      case "wipe":
        batch.journal = batch.journal.filter((row) => row.rid !== change.rid || row.run >= change.run);
        batch.events = batch.events.filter((row) => row.rid !== change.rid);
        batch.wipes.set(change.rid, change.run);
        break;
      case "remove":
        batch.journal = batch.journal.filter((row) => row.rid !== change.rid);
        batch.events = batch.events.filter((row) => row.rid !== change.rid);
        batch.updates.delete(change.rid);
        batch.wipes.delete(change.rid);
        batch.removes.add(change.rid);
        break;
    }
  }
  return batch;
}

/** An event that arrives and is taken in the same transaction is never written. */
function take(batch: WriteBatch, rid: number, number: number): void {
  const at = batch.events.findIndex((row) => row.rid === rid && row.number === number);
  if (at >= 0) batch.events.splice(at, 1);
  else batch.consumed.push({ rid, number });
}
