import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { parseName } from "./segment.ts";

/** The progress of the log copier, from which the next process continues. */
export interface SpoolState {
  /** The value of `backup-folder`, to which the log is shipped. */
  target: string;
  chain: string;
  /** Whether the chain's copy of the database is at the target. */
  isComplete: boolean;
  /** When the chain began. */
  startedMs: number;
  /** Number of the last copied segment. */
  number: number;
  generation: number;
  /** The salt in the header of the log of this generation. */
  salt: string;
  frame: number;
  /** The checksum in the header of that frame, which covers all frames before it. */
  checksum: string;
  /** Whether a checkpoint had moved all frames into the database, so that the log may have been restarted since. */
  isSealed: boolean;
}

export const spoolFolder = (dataDir: string): string => join(dataDir, "log-spool");
/** The file in which the database's process notes the times of commits. */
export const timesPath = (dataDir: string): string => join(spoolFolder(dataDir), "times");

/** Segments that are not at the target yet, and the copier's progress, in files of the data folder. */
export class Spool {
  readonly folder: string;
  #bytes = 0;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const { path } of this.segments()) this.#bytes += statSync(path).size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  readState(): SpoolState | undefined {
    try {
      return JSON.parse(readFileSync(this.#statePath, "utf8")) as SpoolState;
    } catch {
      return undefined;
    }
  }

  /** Stores the state durably, so that no frame is shipped twice after a loss of power. */
  writeState(state: SpoolState): void {
    writeNew(this.#statePath, JSON.stringify(state));
  }

  add(chain: string, name: string, bytes: Buffer): void {
    writeNew(join(this.folder, chain, name), bytes);
    this.#bytes += bytes.length;
  }

  /** All segments: chains and their segments in order. */
  segments(): { chain: string; name: string; path: string }[] {
    const found: { chain: string; name: string; path: string }[] = [];
    for (const entry of readdirSync(this.folder, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      for (const name of readdirSync(join(this.folder, entry.name)))
        if (parseName(name) !== undefined)
          found.push({ chain: entry.name, name, path: join(this.folder, entry.name, name) });
    }
    return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }

  remove(path: string): void {
    this.#bytes -= statSync(path).size;
    rmSync(path);
  }

  /** Forgets the chain that is being copied, and all segments of one chain or of all. */
  clear(chain?: string): void {
    rmSync(this.#statePath, { force: true });
    for (const each of this.segments())
      if (chain === undefined || each.chain === chain) this.remove(each.path);
  }

  get #statePath(): string {
    return join(this.folder, "state.json");
  }
}

/** Writes a file atomically. It is durable when this returns. */
function writeNew(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const partial = `${path}.partial`;
  writeFileSync(partial, content, { mode: 0o600, flush: true });
  renameSync(partial, path);
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
