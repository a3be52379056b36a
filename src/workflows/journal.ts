/** What can be written about an instance; a journal is only ever appended to. */
export const rowKinds = [
  /** an attempt runs (written when it takes long, so that a crash in it counts as an attempt) */
  "start",
  /** a step's result */
  "done",
  /** an attempt failed; with `due` it is repeated then, without it the step has failed */
  "failed",
  /** a sleep until `due` */
  "sleep",
  /** a wait for an event of the type in `value`, until `due` */
  "wait",
  /** the event that a wait got */
  "event",
  /** a wait that got none */
  "timeout",
  /** the clocks stood from `startedOn`, for `due` milliseconds */
  "shift",
  /** something the operator should know, in `error` */
  "warning",
] as const;
export type RowKind = (typeof rowKinds)[number];

export interface JournalRow {
  rid: number;
  /** Which run of the instance: a restart begins a new one, and rows of older ones are void. */
  run: number;
  kind: RowKind;
  /** Kind, name and count of the step: "do:charge-1". Empty for a shift and a warning. */
  key: string;
  attempt: number;
  at: number;
  startedOn: number | null;
  due: number | null;
  value: string | null;
  error: string | null;
  config: string | null;
}

export interface Attempt {
  number: number;
  startedOn: number;
  endedOn: number | null;
  /** JSON of a StepError; null while it runs, and when it succeeded. */
  error: string | null;
  /** Cut off with its cell or node: it has a number, but does not count against the limit of retries. */
  isInterrupted: boolean;
}

/** Everything that the journal says about one step, sleep or wait. */
export interface Entry {
  key: string;
  kind: "do" | "rollback" | "sleep" | "waitForEvent";
  startedOn: number;
  endedOn: number | null;
  attempts: Attempt[];
  config: string | null;
  /** Absent while it is not decided. A value is null when it was left out (see History.forgetValues). */
  outcome?: { value: string | null } | { error: string };
  /** When a sleep or a wait ends, or the next attempt begins. */
  due: number | null;
  eventType: string | null;
}

/**
 * An instance's journal, folded. Entries stand in the order in which they began. A row that stands twice, because a
 * commit was repeated whose answer had been lost, counts once.
 */
export class History {
  readonly entries = new Map<string, Entry>();
  readonly warnings: string[] = [];
  stepCount = 0;
  bytes = 0;
  /** Rows that are in it. */
  size = 0;
  /** Whether results were left out. */
  isPartial = false;
  readonly #shifts = new Set<number>();

  constructor(rows: Iterable<JournalRow> = []) {
    for (const row of rows) this.add(row);
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  add(row: JournalRow): void {
    this.size++;
    this.bytes += (row.value?.length ?? 0) + (row.error?.length ?? 0) + 100;
    if (row.kind === "warning") return void this.warnings.push(row.error ?? "");
    if (row.kind === "shift") return this.#shift(row.startedOn ?? 0, row.due ?? 0);
    const entry = this.entries.get(row.key) ?? this.#open(row);
    if (row.config !== null) entry.config ??= row.config;
    switch (row.kind) {
      case "start":
        closeInterrupted(entry, row.attempt);
        if (entry.attempts.some((attempt) => attempt.number === row.attempt)) break;
        entry.attempts.push({
          number: row.attempt,
          startedOn: row.startedOn ?? row.at,
          endedOn: null,
          error: null,
          isInterrupted: false,
        });
        entry.due = null;
        break;
      case "done":
        this.#closeAttempt(entry, row, null);
        entry.outcome = { value: row.value };
        entry.endedOn = row.at;
        break;
      case "failed":
        this.#closeAttempt(entry, row, row.error);
        entry.due = row.due;
        if (row.due === null) {
          entry.outcome = { error: row.error ?? "" };
          entry.endedOn = row.at;
        }
        break;
      case "sleep":
        entry.due = row.due;
        break;
      case "wait":
        entry.due = row.due;
        entry.eventType = row.value;
        break;
      case "event":
        entry.outcome = { value: row.value };
        entry.endedOn = row.at;
        break;
      case "timeout":
        entry.outcome = { error: row.error ?? "" };
        entry.endedOn = row.at;
        break;
    }
  }

  /** Waits that are open for an event of a type, the oldest first. */
  openWaits(type: string): Entry[] {
    return [...this.entries.values()].filter(
      (entry) => entry.kind === "waitForEvent" && entry.outcome === undefined && entry.eventType === type,
    );
  }

  /** Results are needed for a replay only; what stays in memory with a running instance is small. */
  forgetValues(): void {
    for (const key of this.entries.keys()) this.forgetValue(key);
  }

  forgetValue(key: string): void {
    const entry = this.entries.get(key);
    if (entry?.outcome !== undefined && "value" in entry.outcome) {
      entry.outcome = { value: null };
      this.isPartial = true;
    }
  }

  #open(row: JournalRow): Entry {
    const kind = entryKind(row.key);
    const startedOn = row.startedOn ?? row.at;
    const entry: Entry = {
      key: row.key,
      kind,
      startedOn,
      endedOn: null,
      attempts: [],
      config: null,
      due: null,
      eventType: null,
    };
    this.entries.set(row.key, entry);
    if (kind === "do") this.stepCount++;
    return entry;
  }

  #closeAttempt(entry: Entry, row: JournalRow, error: string | null): void {
    closeInterrupted(entry, row.attempt);
    const open = entry.attempts.find((attempt) => attempt.number === row.attempt);
    if (open === undefined) {
      const startedOn = row.startedOn ?? row.at;
      entry.attempts.push({ number: row.attempt, startedOn, endedOn: row.at, error, isInterrupted: false });
    } else {
      open.endedOn = row.at;
      open.error = error;
    }
    entry.due = null;
  }

  /** Whatever was still to come when the clocks stopped comes later by the time that they stood. */
  #shift(stoppedOn: number, byMs: number): void {
    if (this.#shifts.has(stoppedOn)) return;
    this.#shifts.add(stoppedOn);
    for (const entry of this.entries.values()) {
      if (entry.outcome === undefined && entry.due !== null && entry.due > stoppedOn) entry.due += byMs;
    }
  }
}

const interruption = JSON.stringify({
  name: "WorkflowInternalError",
  message: "Attempt failed due to internal workflows error",
});

/** An attempt before this one that never ended was cut off, with the cell or the node that it ran on. */
function closeInterrupted(entry: Entry, current: number): void {
  for (const attempt of entry.attempts) {
    if (attempt.number < current && attempt.endedOn === null) {
      attempt.endedOn = attempt.startedOn;
      attempt.error = interruption;
      attempt.isInterrupted = true;
    }
  }
}

export const entryKind = (key: string): Entry["kind"] => key.slice(0, key.indexOf(":")) as Entry["kind"];
/** "charge-1" of "do:charge-1": the step's name as it is shown. */
export const entryName = (key: string): string => key.slice(key.indexOf(":") + 1);
