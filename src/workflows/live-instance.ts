import type { Change } from "./batch.ts";
import { History, type JournalRow } from "./journal.ts";
import { scheduleOf, type EventRow, type InstanceRow, type InstanceState } from "./instance.ts";
import type { HistoryMessage, StartMessage } from "./worker/messages.ts";
import type { ErrorMessage } from "./worker/messages.ts";

/** A call of a segment that is answered when it is due, or when an event comes. */
export interface PendingCall {
  call: number;
  key: string;
  due: number;
  /** Of a wait. */
  eventType: string | null;
}

/** Results beyond this are not sent with the others when a segment begins, but asked for. */
const inlineBytesMax = 4 * 1024 * 1024;
const inlineValueBytesMax = 64 * 1024;

/** An instance that something happens to: its row, its journal, its events, and the segment that runs. */
export class LiveInstance {
  readonly row: InstanceRow;
  history: History;
  events: EventRow[];
  segment: { number: number; pending: Map<number, PendingCall>; stepsMax: number } | undefined;
  /** Operations that are under way: it is not forgotten meanwhile. */
  pins = 0;
  /** A restart that is not durable yet: until it is, nothing of the new run begins. */
  restarting: Promise<void> | undefined;
  /** Another node has it now: nothing may be written for it here. */
  isLost = false;
  /** The database refuses something of it for good: it has been ended. */
  isRefused = false;

  constructor(row: InstanceRow, journal: readonly JournalRow[], events: EventRow[]) {
    this.row = row;
    this.history = new History(journal);
    this.events = events;
  }

  get rid(): number {
    return this.row.rid;
  }

  /** The change that makes what the instance is now durable. */
  update(now: number): Change {
    this.row.modifiedOn = now;
    const { status, run, versionRid, createdOn, modifiedOn, startedOn, endedOn } = this.row;
    const { pausedOn, wakeOn, expiresOn, crashes, output, error } = this.row;
    const state: InstanceState = {
      status,
      run,
      versionRid,
      createdOn,
      modifiedOn,
      startedOn,
      endedOn,
      pausedOn,
      wakeOn,
      expiresOn,
      crashes,
      output,
      error,
    };
    return { kind: "update", rid: this.rid, state };
  }

  /** Adds a row to the journal: here at once, in the database with the change that is returned. */
  record(row: Pick<JournalRow, "kind" | "key" | "at"> & Partial<JournalRow>): Change {
    const whole: JournalRow = {
      rid: this.rid,
      run: this.row.run,
      attempt: 0,
      startedOn: null,
      due: null,
      value: null,
      error: null,
      config: null,
      ...row,
    };
    this.history.add(whole);
    return { kind: "journal", row: whole };
  }

  /** The first buffered event of a type that came before a wait was over. */
  takeEvent(type: string, before: number): EventRow | undefined {
    const at = this.events.findIndex((event) => event.type === type && event.at < before);
    return at < 0 ? undefined : this.events.splice(at, 1)[0];
  }

  /** What a segment must know to go on from here. */
  startMessage(workflowName: string, limits: StartMessage["limits"], now: number): StartMessage {
    let inlineBytes = 0;
    const inline = (text: string | null): string | null => {
      if (text === null || text.length > inlineValueBytesMax || inlineBytes > inlineBytesMax) return null;
      inlineBytes += text.length;
      return text;
    };
    const history = [...this.history.entries.values()].map((entry): HistoryMessage => {
      const { key, outcome } = entry;
      if (outcome !== undefined && "error" in outcome)
        return [key, "error", JSON.parse(outcome.error) as ErrorMessage];
      if (outcome !== undefined && entry.kind === "waitForEvent") {
        return [key, "event", inline(outcome.value), entry.eventType ?? "", entry.endedOn ?? 0];
      }
      if (outcome !== undefined) return [key, "value", inline(outcome.value)];
      if (entry.kind === "sleep" && entry.due !== null && entry.due <= now) return [key, "value", null];
      const failures = entry.attempts.filter(
        ({ error, isInterrupted }) => error !== null && !isInterrupted,
      ).length;
      const last = entry.attempts.at(-1)?.number ?? 0;
      return [key, "open", last, failures, entry.due !== null && entry.due > now, entry.config];
    });
    const { params, createdOn, id } = this.row;
    const schedule = scheduleOf(this.row);
    return {
      payload: params,
      timestamp: createdOn,
      instanceId: id,
      workflowName,
      ...(schedule === undefined ? {} : { schedule }),
      history,
      limits,
      isTraced: false, // where it runs it is known
    };
  }
}
