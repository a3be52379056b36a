import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The process that uses a data folder. */
export interface FolderUser {
  pid: number;
  /** RFC 3339. */
  started: string;
}

const lockName = "selvedge.lock";
const userName = "selvedge.pid";
const busy = 5; // SQLITE_BUSY

/** Another process uses the data folder. */
export class FolderInUse extends Error {}

/**
 * The lock of a data folder, which one process holds. It is a transaction on a SQLite file of its own: the
 * system releases that lock when the process ends, however it ends.
 */
export class FolderOwner implements Disposable {
  readonly #folder: string;
  readonly #lock: DatabaseSync;

  /** Creates the folder if it is missing. Throws `FolderInUse` while another process has the lock. */
  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#lock = lock(folder);
  }

  /** Whether a process has used the folder before. */
  static isKnown(folder: string): boolean {
    return existsSync(join(folder, lockName));
  }

  /** The process that has the lock; undefined if there is none. Changes nothing. */
  static find(folder: string): FolderUser | undefined {
    if (!FolderOwner.isKnown(folder)) return undefined;
    try {
      lock(folder).close();
      return undefined;
    } catch (error) {
      if (error instanceof FolderInUse) return readUser(folder);
      throw error;
    }
  }

  /** Writes this process's id and start time, for the error messages of other processes. */
  announce(): void {
    const user: FolderUser = { pid: process.pid, started: new Date(performance.timeOrigin).toISOString() };
    writeFileSync(join(this.#folder, userName), `${JSON.stringify(user)}\n`, { mode: 0o600 });
  }

  [Symbol.dispose](): void {
    if (!this.#lock.isOpen) return;
    rmSync(join(this.#folder, userName), { force: true });
    this.#lock.close();
  }
}

function lock(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, lockName), { timeout: 0 });
  try {
    database.exec("pragma journal_mode = memory; begin exclusive");
    return database;
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== busy) throw error;
    const user = readUser(folder);
    const name = user === undefined ? "another process" : `process ${user.pid}, started ${user.started}`;
    throw new FolderInUse(
      `The data folder ${folder} is in use by ${name}. Stop it, or choose another folder with --data-dir`,
    );
  }
}

function readUser(folder: string): FolderUser | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, userName), "utf8")) as FolderUser;
  } catch {
    return undefined; // the process is just starting and has not written the file
  }
}
