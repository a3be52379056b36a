import { join } from "node:path";
import { isLoopback } from "./config.ts";
import type { Config } from "./settings.ts";

/** Values that follow from several settings. */

export const databaseUrl = (config: Config): string =>
  config.databaseUrl ??
  (config.ephemeral ? "sqlite::memory:" : `sqlite:${join(config.dataDir, "selvedge.db")}`);

/** The file of the SQLite database; undefined if the database is in memory, or in PostgreSQL. */
export function sqliteFileOf(config: Config): string | undefined {
  const url = databaseUrl(config);
  return url.startsWith("sqlite:") && url !== "sqlite::memory:" ? url.slice("sqlite:".length) : undefined;
}

/** Whether only this machine can reach the platform. Some defaults are then more convenient than strict. */
export function isOnLoopback({ apiListen, edgeListen, dnsListen, edgeTlsListen }: Config): boolean {
  return [apiListen, edgeListen, dnsListen, edgeTlsListen ?? edgeListen].every(isLoopback);
}

/** How the platform finds out that a zone is delegated to it. */
export const activationOf = (config: Config): "static" | "dns" =>
  config.activation ?? (isOnLoopback(config) ? "static" : "dns");

/** Host names of the installation itself: the domain of scripts without a zone, and the host of image delivery. */
export function platformNames({ workersDomain, deliveryUrl }: Config): string[] {
  const delivery = deliveryUrl === undefined ? [] : [new URL(deliveryUrl).hostname];
  return [workersDomain.toLowerCase(), ...delivery];
}
