import type { InstanceChange } from "../store/batch.ts";
import { History, type JournalRow } from "../store/journal.ts";
import { scheduleOf, type EventRow, type InstanceRow, type InstanceState } from "../instance.ts";
import type { HistoryMessage, StartMessage } from "../worker/messages.ts";
import type { ErrorMessage } from "../worker/messages.ts";

/** A call that is answered at its due time, or when an event arrives. */
export interface PendingCall {
  call: number;
  key: string;
  due: number;
  /** For a wait: the type of its event. */
  eventType: string | null;
}

/** Results beyond this total are omitted from the start message, and the invocation requests them. */
const inlineBytesMax = 4 * 1024 * 1024;
const inlineValueBytesMax = 64 * 1024;
/** Characters kept of each error message when there are too many errors to send in full. */
const messageLengthLeft = 100;

/** An instance in memory: its row, journal, events, and running invocation. */
export class LiveInstance {
  readonly row: InstanceRow;
  history: History;
  events: EventRow[];
  invocation: { number: number; pending: Map<number, PendingCall>; stepsMax: number } | undefined;
  /** Running operations on the instance; it stays in memory while there are any. */
  pins = 0;
  /** A restart that is not durable yet. The new run starts after it. */
  restarting: Promise<void> | undefined;
  /** Another node owns the instance; this node must not write for it. */
  isLost = false;
  /** The instance was removed or is being removed; writes for it are dropped. */
  isRemoved = false;
  /** The database refused a write permanently, so the instance was ended. */
  isRefused = false;

  constructor(row: InstanceRow, journal: readonly JournalRow[], events: EventRow[]) {
    this.row = row;
    this.history = new History(journal);
    this.events = events;
  }

  get rid(): number {
    return this.row.rid;
  }

  /** The change that saves the current row. */
  update(now: number): InstanceChange {
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

  /** Appends a row to the journal in memory and returns the change that makes it durable. */
  record(row: Pick<JournalRow, "kind" | "key" | "at"> & Partial<JournalRow>): InstanceChange {
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

  /** Takes the first buffered event of a type that arrived before `before`, the end of the wait. */
  takeEvent(type: string, before: number): EventRow | undefined {
    const at = this.events.findIndex((event) => event.type === type && event.at < before);
    return at < 0 ? undefined : this.events.splice(at, 1)[0];
  }

  /** The message that starts an invocation from the journal. */
  startMessage(workflowName: string, limits: StartMessage["limits"], now: number): StartMessage {
    let inlineBytes = 0;
    const inline = (text: string | null): string | null => {
      if (text === null || text.length > inlineValueBytesMax || inlineBytes > inlineBytesMax) return null;
      inlineBytes += text.length;
      return text;
    };
    const inlineError = (error: ErrorMessage): ErrorMessage => {
      const { name, message, stack = "" } = error;
      inlineBytes += name.length + message.length + stack.length;
      // A journal with thousands of long errors would need a message of 100 MB.
      return inlineBytes > inlineBytesMax ? { name, message: message.slice(0, messageLengthLeft) } : error;
    };
    const history = [...this.history.entries.values()].map((entry): HistoryMessage => {
      const { key, outcome } = entry;
      if (outcome !== undefined && "error" in outcome)
        return [key, "error", inlineError(JSON.parse(outcome.error) as ErrorMessage)];
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
    const { params, createdOn, id, creatorTrace } = this.row;
    const schedule = scheduleOf(this.row);
    return {
      payload: params,
      timestamp: createdOn,
      instanceId: id,
      workflowName,
      ...(schedule === undefined ? {} : { schedule }),
      ...(creatorTrace === null ? {} : { creatorTrace }),
      history,
      limits,
      isTraced: false, // the cell sets this
    };
  }
}
