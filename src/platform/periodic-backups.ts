import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { ConfigError } from "./config/config.ts";
import { durationMs } from "./config/forms.ts";
import { checkEncryption, encryptionOf } from "./backup-encryption.ts";
import { bucketUrlOf, isBucket, openArchiveStore } from "./open-archive-store.ts";
import { settings, type Config, type SettingName } from "./config/settings.ts";
import { backupCredentials } from "./s3-settings.ts";
import type { ArchiveStore } from "./storage/archive/archive.ts";
import type { Metrics } from "./observability/metrics.ts";
import { projectUrl } from "./util/module-url.ts";
import { unawaited } from "./util/uncaught.ts";

const retryMs = 10 * 60 * 1000;
/** Node's timers cannot wait longer than 24 days. */
const sleepMsMax = 24 * 60 * 60 * 1000;
const dayMs = 24 * 60 * 60 * 1000;
const errorCharactersMax = 4000;
/** The settings that each backup's process gets. */
const passedOn: readonly SettingName[] = [
  "dataDir",
  "databaseUrl",
  "blobUrl",
  "blobAccessKeyId",
  "blobSecretAccessKey",
  "backupFolder",
  "backupAccessKeyId",
  "backupSecretAccessKey",
  "backupPassphraseFile",
  "backupUnencrypted",
];

/** Throws ConfigError if the settings of periodic backups contradict each other. */
export function checkBackupSettings(config: Config): void {
  const { backupEvery, backupFolder, backupLog, ephemeral } = config;
  if (backupFolder !== undefined && isBucket(backupFolder)) {
    bucketUrlOf(backupFolder, "--backup-folder");
    backupCredentials(config);
  }
  const isWritten =
    backupFolder !== undefined && (backupEvery ?? backupLog ?? config.objectLog) !== undefined;
  if (isWritten) checkEncryption(config, "--backup-folder", isBucket(backupFolder));
  else encryptionOf(config);
  checkLogSettings(config);
  checkObjectLogSettings(config);
  if (backupEvery === undefined) return;
  if (backupFolder === undefined)
    throw new ConfigError("Expected a folder for --backup-folder, because --backup-every is set");
  if (ephemeral) throw new ConfigError("Expected no --backup-every with --ephemeral, which keeps nothing");
}

function checkLogSettings({ backupLog, backupFolder, ephemeral, databaseUrl }: Config): void {
  if (backupLog === undefined) return;
  if (backupFolder === undefined)
    throw new ConfigError("Expected a folder for --backup-folder, because --backup-log is set");
  if (ephemeral) throw new ConfigError("Expected no --backup-log with --ephemeral, which keeps nothing");
  if (databaseUrl !== undefined)
    throw new ConfigError(
      "Expected no --backup-log with --database-url: it is for SQLite in the data folder. PostgreSQL archives its log itself",
    );
}

function checkObjectLogSettings({
  objectLog,
  objectLogFirst,
  backupFolder,
  ephemeral,
  databaseUrl,
  nodeListen,
}: Config): void {
  if (objectLogFirst && objectLog === undefined)
    throw new ConfigError("Expected a time for --object-log, because --object-log-first is set");
  if (objectLog === undefined) return;
  if (backupFolder === undefined)
    throw new ConfigError("Expected a folder for --backup-folder, because --object-log is set");
  if (ephemeral) throw new ConfigError("Expected no --object-log with --ephemeral, which keeps nothing");
  if (databaseUrl !== undefined && nodeListen === undefined)
    throw new ConfigError(
      "Expected an address for --node-listen, because --object-log is set with --database-url: nodes that run objects pass requests on to each other",
    );
}

/** Starts periodic backups, if they are set. A restart does not make one earlier. */
export async function startBackups(
  config: Config,
  logger: Logger,
  metrics: Metrics | undefined,
): Promise<PeriodicBackups | undefined> {
  const { backupEvery, backupFolder } = config;
  if (backupEvery === undefined || backupFolder === undefined) return undefined;
  if (!isBucket(backupFolder)) await mkdir(backupFolder, { recursive: true, mode: 0o700 });
  const store = await openArchiveStore(backupFolder, config, "--backup-folder");
  const backups = new PeriodicBackups(
    config,
    { store, folder: backupFolder },
    durationMs(backupEvery),
    logger,
  );
  if (metrics !== undefined) {
    const { backupMetrics } = await import("./observability/backup-metrics.ts");
    metrics.register(backupMetrics(backups));
  }
  backups.start();
  return backups;
}

/**
 * Makes backups with `selvedge backup` in a process of its own, so that their work does not delay requests, and
 * deletes old ones.
 */
export class PeriodicBackups {
  /** When the newest complete backup began. */
  lastSuccessMs: number | undefined;
  /** How long the last one took; undefined before the first. */
  lastSeconds: number | undefined;
  failures = 0;
  readonly everyMs: number;
  readonly #config: Config;
  readonly #store: ArchiveStore;
  /** The value of `backup-folder`: a path or a URL. */
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(
    config: Config,
    { store, folder }: { store: ArchiveStore; folder: string },
    everyMs: number,
    logger: Logger,
  ) {
    this.#config = config;
    this.#store = store;
    this.#folder = folder;
    this.everyMs = everyMs;
    this.#logger = logger;
  }

  start(): void {
    this.#runAt(0);
  }

  /** Ends a running backup, and makes no more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    await this.#running;
    await this.#store.close();
  }

  #runAt(timeMs: number): void {
    if (this.#stopping.signal.aborted) return;
    const delayMs = Math.max(0, Math.min(timeMs - Date.now(), sleepMsMax));
    this.#timer = setTimeout(() => {
      if (Date.now() < timeMs) this.#runAt(timeMs);
      else unawaited((this.#running = this.#run()));
    }, delayMs);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    const startedMs = Date.now();
    try {
      if (this.lastSuccessMs === undefined) {
        this.lastSuccessMs = (await periodicBackups(this.#store))[0]?.timeMs;
        // If the clock was ahead at the last backup, it must not delay the next one.
        const nextMs = Math.min(this.lastSuccessMs ?? 0, startedMs) + this.everyMs;
        if (this.lastSuccessMs !== undefined && nextMs > startedMs) return this.#runAt(nextMs);
      }
      await this.#make(startedMs);
      this.lastSuccessMs = startedMs;
      this.lastSeconds = (Date.now() - startedMs) / 1000;
      this.#runAt(startedMs + this.everyMs);
      await this.#removeOld(startedMs);
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        this.failures++;
        this.#logger.error({ err: error }, "the periodic backup failed");
      }
      this.#runAt(Date.now() + Math.min(retryMs, this.everyMs));
    }
  }

  async #make(timeMs: number): Promise<void> {
    const name = nameOf(timeMs);
    const args = [projectUrl("bin/selvedge.js").pathname, "backup", below(this.#folder, name)];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...environmentOf(this.#config) },
      stdio: ["ignore", "ignore", "pipe"],
      signal: this.#stopping.signal,
      killSignal: "SIGKILL",
    });
    let output = "";
    child.stderr.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-errorCharactersMax);
    });
    child.on("error", () => {}); // "close" follows
    const code = await new Promise((closed) => child.on("close", closed));
    if (code === 0) {
      this.#logger.info({ backup: name, seconds: (Date.now() - timeMs) / 1000 }, "backup made");
      return;
    }
    await this.#store.removeAttempts(name);
    throw new Error(`selvedge backup ended with ${String(code)}: ${output.trim()}`);
  }

  /** Keeps the newest backup, and the one just made, which looks old if the clock jumped back. */
  async #removeOld(madeMs: number): Promise<void> {
    const { backupKeep, backupKeepDays } = this.#config;
    const oldestMs = backupKeepDays === 0 ? 0 : Date.now() - backupKeepDays * dayMs;
    for (const [index, { name, timeMs }] of (await periodicBackups(this.#store)).entries()) {
      if (index === 0 || timeMs === madeMs || (index < backupKeep && timeMs >= oldestMs)) continue;
      await this.#store.remove(name);
      this.#logger.info({ backup: name }, "old backup deleted");
    }
  }
}

/** Complete periodic backups of a store, newest first, with the times when they began. */
export async function periodicBackups(store: ArchiveStore): Promise<{ name: string; timeMs: number }[]> {
  const names = await store.names();
  return names
    .flatMap((name) => {
      const timeMs = timeOf(name);
      return timeMs === undefined ? [] : [{ name, timeMs }];
    })
    .toSorted((one, other) => other.timeMs - one.timeMs);
}

function environmentOf(config: Config): Record<string, string> {
  return Object.fromEntries(
    passedOn.flatMap((name) => {
      const value = config[name];
      return value === undefined ? [] : [[settings[name].env, String(value)]];
    }),
  );
}

/** The path or URL of a backup. */
function below(folder: string, name: string): string {
  if (!isBucket(folder)) return join(folder, name);
  const url = new URL(folder);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${name}`;
  return url.href;
}

/** A time as the name of a folder, such as 2026-11-22T17-00-00.000Z. */
const nameOf = (timeMs: number): string => new Date(timeMs).toISOString().replaceAll(":", "-");

/** The time of the folder of a periodic backup; undefined for other names. */
function timeOf(name: string): number | undefined {
  const [, day, hour, minute, second] = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3}Z)$/.exec(name) ?? [];
  return day === undefined ? undefined : Date.parse(`${day}T${hour}:${minute}:${second}`);
}
