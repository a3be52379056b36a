import { lstat, open, rm, type FileHandle } from "node:fs/promises";
import { frameHeaderBytes, pageOf, commitOf } from "./log-format.ts";
import { LogGap, LogTail, type Frames } from "./log-tail.ts";
import { readFlags } from "./object-files.ts";

/** The pieces follow each other without the pauses of other parts of a backup, in which the log could restart unread. */
const pieceBytes = 1024 * 1024;
const attemptsMax = 5;

/**
 * Copies a SQLite database to a new file, without locks, while another process may write it. The copy is a
 * consistent state with all commits before the call. Returns false if there is no such database, or if it has
 * fewer bytes than `bytesMin`. Copies the database file page by page, and meanwhile all frames of its log. A
 * page that changes during the copy is in those frames, because SQLite only moves pages from the log to the
 * file.
 */
export async function copyDatabase(path: string, to: string, bytesMin = 1): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    const before = await stateOf(path);
    if (before === undefined) return false;
    const frames = `${to}.frames`;
    try {
      const log = await open(frames, "w+", 0o600);
      try {
        const found = await copyFile(path, to, log);
        const after = await stateOf(path);
        if (after === undefined) return false;
        // Without a log, changed pages would not be noticed.
        if (!found.hasLog && after !== before) throw new LogGap("The database changed while it was copied");
        return found.bytes >= bytesMin;
      } finally {
        await log.close();
      }
    } catch (error) {
      if (!(error instanceof LogGap) || attempt === attemptsMax) throw error;
    } finally {
      await rm(frames, { force: true });
    }
  }
}

async function stateOf(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(missing);
  return found?.isFile() === true ? `${found.ino} ${found.size} ${found.mtimeNs}` : undefined;
}

async function copyFile(
  path: string,
  to: string,
  log: FileHandle,
): Promise<{ hasLog: boolean; bytes: number }> {
  const waiting: Frames[] = [];
  const tail = new LogTail(`${path}-wal`);
  const kept: Omit<Frames, "bytes">[] = [];
  const keep = async (): Promise<void> => {
    for (const { bytes, ...position } of waiting.splice(0)) {
      await log.appendFile(bytes);
      kept.push({ ...position, pages: bytes.length });
    }
  };
  const source = await open(path, readFlags);
  const target = await open(to, "w", 0o600);
  try {
    const read = async (): Promise<void> => {
      tail.read((frames) => waiting.push(frames));
      await keep();
    };
    await read();
    let bytes = await copyBytes(source, target, read);
    await read();
    let at = 0;
    for (const { pages: length, pageBytes } of kept) {
      const piece = Buffer.alloc(length);
      await log.read(piece, 0, length, at);
      at += length;
      bytes = (await writePages(target, piece, pageBytes)) ?? bytes;
    }
    await target.truncate(bytes);
    return { hasLog: kept.length > 0, bytes };
  } finally {
    tail.close();
    await source.close();
    await target.close();
  }
}

async function copyBytes(
  source: FileHandle,
  target: FileHandle,
  after: () => Promise<void>,
): Promise<number> {
  const piece = Buffer.alloc(pieceBytes);
  for (let at = 0; ;) {
    const { bytesRead } = await source.read(piece, 0, pieceBytes, at);
    if (bytesRead === 0) return at;
    await target.write(piece, 0, bytesRead, at);
    at += bytesRead;
    await after();
  }
}

/** Writes the pages of frames into a database. Returns the size of the database in bytes after the last commit. */
export async function writePages(
  target: FileHandle,
  frames: Buffer,
  pageBytes: number,
): Promise<number | undefined> {
  let bytes: number | undefined;
  for (let at = 0; at < frames.length; at += frameHeaderBytes + pageBytes) {
    await target.write(frames, at + frameHeaderBytes, pageBytes, (pageOf(frames, at) - 1) * pageBytes);
    if (commitOf(frames, at) !== 0) bytes = commitOf(frames, at) * pageBytes;
  }
  return bytes;
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}
