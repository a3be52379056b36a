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

/** Collects the queries of the zones whose queries are read, and tells many at a time. */
export class QueryLog {
  readonly #tell: (queries: readonly LoggedQuery[]) => void;
  #zoneIds: ReadonlySet<string> = new Set();
  #waiting: LoggedQuery[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Whether any zone is read. If not, a query costs this comparison. */
  isOn = false;

  constructor(tell: (queries: readonly LoggedQuery[]) => void) {
    this.#tell = tell;
  }

  /** Replaces the zones whose queries are read. */
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
    this.#tell(this.#waiting);
    this.#waiting = [];
  }
}
