/** A query for a name of a logged zone, and the code of its answer. Plain data, so that threads can send it. */
export interface LoggedQuery {
  zoneId: string;
  /** With dots. */
  name: string;
  type: number;
  rcode: number;
  address: string;
  timeMs: number;
}

const togetherMax = 500;
const waitMs = 100;

/** Collects the queries of logged zones, and reports them in batches. */
export class QueryLog {
  readonly #report: (queries: readonly LoggedQuery[]) => void;
  #zoneIds: ReadonlySet<string> = new Set();
  #waiting: LoggedQuery[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Whether any zone is logged. If not, this check is a query's only cost. */
  isOn = false;

  constructor(report: (queries: readonly LoggedQuery[]) => void) {
    this.#report = report;
  }

  /** Replaces the set of logged zones. */
  use(zoneIds: readonly string[]): void {
    this.#zoneIds = new Set(zoneIds);
    this.isOn = zoneIds.length > 0;
  }

  reads(zoneId: string): boolean {
    return this.#zoneIds.has(zoneId);
  }

  note(query: LoggedQuery): void {
    this.#waiting.push(query);
    if (this.#waiting.length >= togetherMax) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), waitMs).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#report(this.#waiting);
    this.#waiting = [];
  }
}
