import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The identity of a node: the same after each start on its data folder. */
export interface NodeIdentity {
  /** A UUID. */
  id: string;
  /** Identifies the data folder. Differs for a copy of it, on this machine or another. */
  place: string;
}

const fileName = "node.json";
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A new identity, for a node whose data folder is deleted when it ends. */
export function temporaryIdentity(): NodeIdentity {
  const id = randomUUID();
  return { id, place: id };
}

/**
 * The identity in a data folder, which the first start creates. Call it only while this process has the lock
 * of the folder.
 */
export function identityIn(folder: string): NodeIdentity {
  const path = join(folder, fileName);
  const id = readId(path) ?? createId(path);
  const { dev, ino } = statSync(path, { bigint: true });
  return { id, place: `${machine()} ${dev} ${ino}` };
}

/** Undefined if there is no file, or one that is not complete: a full disk may have cut it off. */
function readId(path: string): string | undefined {
  try {
    const { id } = JSON.parse(readFileSync(path, "utf8")) as { id?: unknown };
    return typeof id === "string" && uuidPattern.test(id) ? id : undefined;
  } catch {
    return undefined;
  }
}

function createId(path: string): string {
  const id = randomUUID();
  const unfinished = `${path}.new`;
  writeFileSync(unfinished, `${JSON.stringify({ id })}\n`, { mode: 0o600, flush: true });
  renameSync(unfinished, path);
  return id;
}

/** The running system: inode numbers mean nothing outside of it. */
function machine(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return "unknown";
  }
}
