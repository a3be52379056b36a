import type { Source } from "./source.ts";
import { sqliteSource } from "./source-sqlite.ts";

/** Opens "sqlite:PATH" or "postgres://…" for a backup. */
export async function openSource(url: string): Promise<Source> {
  if (url.startsWith("sqlite:")) return sqliteSource(url.slice("sqlite:".length));
  return (await import("./source-postgres.ts")).postgresSource(url);
}
