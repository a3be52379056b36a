import { inspect } from "node:util";
import { ConfigError } from "../platform/config/config.ts";
import { BackupError } from "../platform/storage/archive/errors.ts";
import { UnusableDatabase } from "../platform/storage/faults.ts";
import { FolderInUse } from "../platform/storage/folder-owner.ts";
import { NodeInUse } from "../platform/storage/nodes/node-registry.ts";
import { MigrationError } from "./migration/failure.ts";

const hints: Record<string, string> = {
  EADDRINUSE: "Another process listens there. Stop it (`ss -ltnup` shows it), or choose another port.",
  EADDRNOTAVAIL: "This machine does not have the address. `ip address` shows those that it has.",
  EACCES:
    "This user lacks the permission. Ports below 1024 need CAP_NET_BIND_SERVICE or net.ipv4.ip_unprivileged_port_start, and the data folder must belong to this user.",
  ENOSPC: "The disk is full. Free some space, or choose another folder with --data-dir.",
  EROFS: "The file system is read-only. Choose another folder with --data-dir.",
  ECONNREFUSED: "Nothing accepts connections there. Check --database-url, and whether PostgreSQL runs.",
};
/** Errors whose message is for the operator. */
const expected = [BackupError, ConfigError, FolderInUse, MigrationError, NodeInUse, UnusableDatabase];
/** SQLite's own error numbers. */
const codesOfSqlite: Record<number, string> = { 8: "EROFS", 13: "ENOSPC" };

/** The text for an error that ends a command: the chain of its causes, and a hint if there is one. */
export function explain(error: unknown): string {
  const chain = causesOf(error);
  const code = chain.map(codeOf).find((each) => each !== undefined);
  const isExpected = code !== undefined || expected.some((kind) => error instanceof kind);
  if (!isExpected) return `${inspect(error)}\n`;
  const hint = code === undefined ? undefined : hints[code];
  // Some messages repeat that of their cause.
  const messages = chain.map(messageOf).filter((text, index, all) => all[index - 1]?.includes(text) !== true);
  const text = messages.map((message) => message.replace(/\.$/, "")).join(": ");
  return `${text}\n${hint === undefined ? "" : `${hint}\n`}`;
}

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let each = error; each instanceof Error && !chain.includes(each); each = each.cause) chain.push(each);
  return chain;
}

function codeOf(error: Error): string | undefined {
  const { code, errcode } = error as { code?: unknown; errcode?: number };
  const ofSqlite = errcode === undefined ? undefined : codesOfSqlite[errcode & 0xff];
  return ofSqlite ?? (typeof code === "string" ? code : undefined);
}

/** A failed connection to several addresses is an AggregateError with an error for each and no message of its own. */
const messageOf = (error: Error): string =>
  error instanceof AggregateError && error.message === ""
    ? error.errors.map((each) => messageOf(each as Error)).join(", ")
    : error.message;
