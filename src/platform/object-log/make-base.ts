import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Archive } from "../storage/archive/archive.ts";
import { compressed, writePart } from "../storage/archive/parts.ts";
import { contentPath, markBase } from "./bases.ts";
import { fileBytes, readFlags } from "../storage/live-files/object-files.ts";
import type { FollowedFile } from "./followed-file.ts";
import type { LogOrder } from "./log-order.ts";
import type { Entry } from "./segment.ts";
import type { Stamps } from "./stamps.ts";

/** Databases up to this size become an entry of a segment. */
export const smallBytes = 256 * 1024;
const pieceBytes = 1024 * 1024;

/** Makes a base of a small database, as an entry of a segment. */
export function pushBase(followed: FollowedFile, stamps: Stamps, push: (entry: Entry) => void): void {
  const { file, path, epoch } = followed;
  const start = followed.baseStart;
  const bytes = readFileSync(path, { flag: readFlags });
  followed.read();
  if (followed.epoch !== epoch) return;
  const stamp = stamps.next();
  push({ ...file, kind: "base", start, stamp, bytes });
  followed.setBase(stamp);
}

interface BaseParts {
  order: LogOrder;
  files: Archive;
  stamps: Stamps;
  /** Ships the frames that were read. */
  ship: () => Promise<void>;
}

/**
 * Makes a base of a large database, in a file of its own, and reads its log meanwhile. Returns false if that
 * failed.
 */
export async function writeBase(
  followed: FollowedFile,
  { order, files, stamps, ship }: BaseParts,
): Promise<boolean> {
  const { file, path, epoch } = followed;
  followed.isCopied = true;
  try {
    const right = order.right();
    const start = followed.baseStart;
    const target = contentPath(file, start, randomBytes(4).toString("hex"));
    const part = await writePart(files, target, compressed(piecesOf(followed)));
    followed.read();
    const stamp = stamps.next();
    await ship();
    if (followed.epoch !== epoch) {
      await files.remove(target);
      return false;
    }
    const base = { ...file, start, stamp, part };
    await markBase(files, base);
    if (followed.epoch !== epoch) return false;
    await order.addBase(base, right);
    if (followed.epoch !== epoch) return false;
    followed.setBase(stamp);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && fileBytes(path) === 0) return false; // the database was deleted
    throw error;
  } finally {
    followed.isCopied = false;
  }
}

async function* piecesOf(followed: FollowedFile): AsyncGenerator<Buffer> {
  const source = await open(followed.path, readFlags);
  try {
    for (let at = 0; ;) {
      const piece = Buffer.alloc(pieceBytes);
      const { bytesRead } = await source.read(piece, 0, pieceBytes, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      followed.read();
      yield piece.subarray(0, bytesRead);
    }
  } finally {
    await source.close();
  }
}
