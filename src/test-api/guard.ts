import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../platform/config/config.ts";
import { isOnLoopback } from "../platform/config/derived.ts";
import type { Config } from "../platform/config/settings.ts";

const marker = "made-for-tests";

/** Throws a `ConfigError` if tests must not control a platform with this configuration. */
export function refuseProduction(config: Config, environment: NodeJS.ProcessEnv = process.env): void {
  const { databaseUrl, acmeDirectory, relays, dataDir, ephemeral, edgeProcesses, dnsThreads, dnsUdp } =
    config;
  const because = (reason: string): ConfigError =>
    new ConfigError(`Expected no --test-api ${reason}: tests could reset everything`);
  if (!isOnLoopback(config)) throw because("with a listener that other machines can reach");
  if (databaseUrl !== undefined) throw because("with --database-url");
  if (acmeDirectory !== undefined) throw because("with --acme-directory");
  if (edgeProcesses > 0) throw because("with --edge-processes");
  if (dnsThreads > 0) throw because("with --dns-threads");
  if (dnsUdp === "batched") throw because("with --dns-udp batched");
  if (relays.length > 0) throw because("with --relays");
  if (environment["NODE_ENV"] === "production") throw because("with NODE_ENV=production");
  if (ephemeral) return;
  if (existsSync(join(dataDir, "selvedge.db")) && !existsSync(join(dataDir, marker)))
    throw because(`for the data folder ${dataDir}, which was made without it`);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(dataDir, marker), "Tests may reset this folder.\n");
}
