import { setTimeout as after } from "node:timers/promises";
import { Client, type ClientConfig } from "pg";
import { DatabaseUnavailable } from "../faults.ts";
import { unawaited } from "../../util/uncaught.ts";
import { changesChannel } from "./change-log.ts";
import type { LogRow, LogView, LogPosition } from "./examine.ts";

/** The longest wait for a connection, and for an answer to a read. */
const answerMsMax = 5000;
const checkMs = 2000;
const checkEveryMs = 30_000;

const readText = `
  select head.seq as head,
    (extract(epoch from clock_timestamp()) * 1000)::bigint as now,
    pg_is_in_recovery() as "isStandby",
    (select logged_on from changes where seq = head.seq and n = 1) as "headLoggedOn",
    (select logged_on from changes where seq = $1 and n = 1) as "atPosition",
    change.seq, change.n, change.total, change.kind, change.id, change.parent_id, change.logged_on
  from change_head head left join lateral (
    select * from changes where changes.seq > $1 order by changes.seq, changes.n limit $2
  ) change on true
  order by change.seq, change.n`;

interface LoggedRow extends Omit<LogRow, "seq"> {
  seq: number | null;
  head: number;
  now: number;
  isStandby: boolean;
  headLoggedOn: number | null;
  atPosition: number | null;
}

export interface ChangeLogConnectionOptions {
  connection: ClientConfig;
  /** This node's token in notifications. */
  token: string;
  /** Sends a notification to this channel over another connection. */
  notify: (payload: string) => Promise<unknown>;
  /** Called when another node has committed a change. */
  onNotice: () => void;
  /** Called when the connection was lost, with which notifications may have been lost. */
  onLost: () => void;
  /** Called when the server answers again after a failure at `failedMs`, by `performance.now()`. */
  onReturned?: (failedMs: number) => void;
}

/**
 * One connection of its own to read the log and to receive notifications of changes, so that a node follows the others even
 * while all other connections are in use. It connects again with the next read after a failure.
 */
export class ChangeLogConnection {
  readonly #options: ChangeLogConnectionOptions;
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #isProbing = false;
  #checkedMs = -Infinity;
  #isClosed = false;
  /** The first failure since the last answer. */
  #failedMs: number | undefined;
  /**
   * Whether notifications arrive, which this node tests with a notification to itself. They do not arrive
   * through a pooler that gives each transaction a connection.
   */
  isNotified = false;

  constructor(options: ChangeLogConnectionOptions) {
    this.#options = options;
  }

  /** Reads the head, and at most `rowsMax` rows after a position. `nowMs` is the database's clock. */
  async read(seq: number, rowsMax: number): Promise<LogView & { nowMs: number }> {
    const rows = await this.#query<LoggedRow>(readText, [seq, rowsMax]);
    const first = rows[0];
    if (first === undefined) throw new Error("The table change_head has no row");
    if (first.isStandby) {
      this.disconnect();
      throw new DatabaseUnavailable(new Error("the server is a standby, and not the primary any more"));
    }
    const head: LogPosition = { seq: first.head, loggedOn: first.headLoggedOn ?? undefined };
    const changes = rows.filter((row): row is LoggedRow & LogRow => row.seq !== null);
    return {
      head,
      nowMs: first.now,
      atPosition: first.atPosition ?? undefined,
      rows: changes,
      isCut: changes.length >= rowsMax,
    };
  }

  /** Sends the server a query to see whether it answers, unless one is running already. See `onReturned`. */
  async probe(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    try {
      await this.#query("select 1", []);
    } finally {
      this.#isProbing = false;
    }
  }

  /** Tests whether notifications arrive, unless that is known or was tested in the last 30 seconds. */
  check(): void {
    if (this.isNotified || this.#client === undefined) return;
    if (performance.now() - this.#checkedMs < checkEveryMs) return;
    this.#checkedMs = performance.now();
    unawaited(this.#options.notify(`${this.#options.token} check`).catch(() => {}));
  }

  /** Notes that a change came without a notification. */
  missed(): void {
    this.isNotified = false;
  }

  /** Gives up the connection; the next read makes a new one. */
  disconnect(): void {
    this.#failedMs ??= performance.now();
    const client = this.#client;
    this.#client = undefined;
    this.isNotified = false;
    this.#checkedMs = -Infinity;
    if (client !== undefined) destroy(client);
  }

  close(): void {
    this.#isClosed = true;
    this.disconnect();
  }

  /** Whether notifications arrive, as `doctor` asks. Waits at most two seconds. */
  async receivesNotifications(): Promise<boolean> {
    await this.#connected();
    this.check();
    for (const end = performance.now() + checkMs; !this.isNotified && performance.now() < end;)
      await after(20);
    return this.isNotified;
  }

  async #query<R>(text: string, values: unknown[]): Promise<R[]> {
    const client = await this.#connected();
    try {
      const { rows } = await inTime(client, client.query(text, values));
      if (this.#failedMs !== undefined) this.#options.onReturned?.(this.#failedMs);
      this.#failedMs = undefined;
      return rows as R[];
    } catch (error) {
      this.disconnect();
      throw new DatabaseUnavailable(error);
    }
  }

  async #connected(): Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      ...this.#options.connection,
      keepAlive: true,
      connectionTimeoutMillis: answerMsMax,
      application_name: "selvedge changes",
    });
    const lost = (): void => {
      if (this.#client !== client) return;
      this.disconnect();
      this.#options.onLost();
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ payload = "" }) => this.#receive(payload));
    try {
      await client.connect();
      await inTime(client, client.query(`listen ${changesChannel}`));
      if (this.#isClosed) throw new Error("closed");
    } catch (error) {
      this.#failedMs ??= performance.now();
      destroy(client);
      throw new DatabaseUnavailable(error);
    }
    return (this.#client = client);
  }

  #receive(payload: string): void {
    const isOurs = payload.startsWith(this.#options.token);
    const isCheck = payload.endsWith(" check");
    if (isOurs && isCheck) this.isNotified = true;
    if (!isOurs && !isCheck) this.#options.onNotice();
  }
}

async function inTime<T>(client: Client, answer: Promise<T>): Promise<T> {
  const timer = setTimeout(() => destroy(client), answerMsMax);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
}

/** Ends a connection without waiting for the server. */
function destroy(client: Client): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection;
  stream.destroy();
}
