/** Kinds of journal rows. A journal is append-only. */
export const rowKinds = [
  /** an attempt runs (written only for long attempts, so that a crash counts as an attempt) */
  "start",
  /** a step's result */
  "done",
  /** an attempt failed; it is repeated at `due`, or without `due` the step has failed */
  "failed",
  /** a sleep until `due` */
  "sleep",
  /** a wait for an event of the type in `value`, until `due` */
  "wait",
  /** the event that a wait received */
  "event",
  /** a wait that timed out */
  "timeout",
  /** the instance was paused from `startedOn` for `due` milliseconds */
  "shift",
  /** a warning for the operator, in `error` */
  "warning",
] as const;
export type RowKind = (typeof rowKinds)[number];

/** A row of the journal. Its kind determines the meaning of `due` and `value`. Times are epoch milliseconds. */
export interface JournalRow {
  rid: number;
  /** The run of the instance. A restart starts a new run, and rows of older runs are ignored. */
  run: number;
  kind: RowKind;
  /** Kind, name and count of the step: "do:charge-1". Empty for shifts and warnings. */
  key: string;
  attempt: number;
  at: number;
  startedOn: number | null;
  due: number | null;
  value: string | null;
  error: string | null;
  config: string | null;
}

export interface StepAttempt {
  number: number;
  startedOn: number;
  endedOn: number | null;
  /** JSON of a StepError; null while the attempt runs and after it succeeded. */
  error: string | null;
  /** The attempt ended with its cell or node. It has a number, but does not count towards the retry limit. */
  isInterrupted: boolean;
}

/** All rows of one step, sleep or wait. */
export interface JournalEntry {
  key: string;
  kind: "do" | "rollback" | "sleep" | "waitForEvent";
  startedOn: number;
  endedOn: number | null;
  attempts: StepAttempt[];
  config: string | null;
  /** Absent while the step is open. A null value was dropped from memory (see History.forgetValues). */
  outcome?: { value: string | null } | { error: string };
  /** The end of a sleep or wait, or the start of the next attempt; epoch milliseconds. */
  due: number | null;
  eventType: string | null;
}

/**
 * The journal of an instance, grouped by step. Entries are in order of their start. A row that occurs twice,
 * because a commit was retried after its response was lost, counts once.
 */
export class History {
  readonly entries = new Map<string, JournalEntry>();
  readonly warnings: string[] = [];
  stepCount = 0;
  bytes = 0;
  /** Number of rows. */
  size = 0;
  /** True when results were dropped from memory. */
  isPartial = false;
  readonly #shifts = new Set<number>();

  constructor(rows: Iterable<JournalRow> = []) {
    for (const row of rows) this.add(row);
  }

  get(key: string): JournalEntry | undefined {
    return this.entries.get(key);
  }

  add(row: JournalRow): void {
    this.size++;
    this.bytes += (row.value?.length ?? 0) + (row.error?.length ?? 0) + 100;
    if (row.kind === "warning") {
      this.warnings.push(row.error ?? "");
      return;
    }
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

  /** Open waits for an event type, oldest first. */
  openWaits(type: string): JournalEntry[] {
    return [...this.entries.values()].filter(
      (entry) => entry.kind === "waitForEvent" && entry.outcome === undefined && entry.eventType === type,
    );
  }

  /** Drops results from memory, since only a replay needs them. */
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

  #open(row: JournalRow): JournalEntry {
    const kind = entryKind(row.key);
    const startedOn = row.startedOn ?? row.at;
    const entry: JournalEntry = {
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

  #closeAttempt(entry: JournalEntry, row: JournalRow, error: string | null): void {
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

  /** Postpones all pending due times by the length of a pause. */
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

/** An earlier attempt without an end was interrupted with its cell or node. */
function closeInterrupted(entry: JournalEntry, current: number): void {
  for (const attempt of entry.attempts) {
    if (attempt.number < current && attempt.endedOn === null) {
      attempt.endedOn = attempt.startedOn;
      attempt.error = interruption;
      attempt.isInterrupted = true;
    }
  }
}

/** The kind of a key: "do" for "do:charge-1". */
export const entryKind = (key: string): JournalEntry["kind"] =>
  key.slice(0, key.indexOf(":")) as JournalEntry["kind"];
/** The step's display name: "charge-1" for "do:charge-1". */
export const entryName = (key: string): string => key.slice(key.indexOf(":") + 1);
