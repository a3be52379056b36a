import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { checkEncryption, encryptionOf } from "../platform/backup-encryption.ts";
import { ConfigError } from "../platform/config/config.ts";
import type { Config } from "../platform/config/settings.ts";
import { backUp, type Progress } from "../platform/storage/backup/back-up.ts";
import type { BackupAt, Manifest } from "../platform/storage/backup/manifest.ts";
import { restore } from "../platform/storage/backup/restore.ts";
import { openSource } from "../platform/storage/backup/open-source.ts";
import { verify } from "../platform/storage/backup/verify.ts";
import { createLogger } from "../platform/observability/logger.ts";
import type { Blobs } from "../platform/storage/blobs.ts";
import { connectPostgres } from "../platform/storage/storage.ts";
import { blobUrlOf, openBlobs } from "../platform/open-blobs.ts";
import { openLogFiles } from "../platform/log-shipping/log-files.ts";
import type { RestoredObjects } from "../platform/object-log/history.ts";
import { restoreObjectLog } from "../platform/object-log/restore-objects.ts";
import { logPrefix } from "../platform/object-log/segment.ts";
import { withObjectsAt, withObjectsInto } from "../platform/object-shards/archived-objects.ts";
import { restoreLog, type RestoredLog } from "../platform/log-shipping/restore-log.ts";
import { isBucket, openBackupAt, openArchiveStore } from "../platform/open-archive-store.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { yieldToNodes } from "./yield-to-nodes.ts";
import { print, printNote } from "./output.ts";

type Options = Record<string, unknown>;

const progressMs = 1000;
const missingShownMax = 10;

/** `backup`, `backup verify` and `restore`. */
export function registerBackupCommands(program: Command): void {
  const backup = program
    .command("backup")
    .description("write a backup of the database, the blobs and the keys, also while nodes run")
    .argument("<target>", "folder or s3://BUCKET/NAME of the backup, which must not exist yet");
  addConfigOptions(backup)
    .option("--encrypt", "refuse to write the backup without a passphrase")
    .option("--json", "print JSON")
    .action(async (target: string, options: Options) => {
      const { config } = configOf(options);
      checkEncryption(config, "the backup", isBucket(target));
      if (options["encrypt"] === true) insistOnPassphrase(config);
      const manifest = await runBackup(config, target);
      report(options, manifest, `The backup ${shownOf(target)} is complete`);
    });
  const verifying = backup
    .command("verify")
    .description("check that a backup is unchanged and can be restored")
    .argument("<target>", "folder or s3://BUCKET/NAME of the backup");
  addConfigOptions(verifying)
    .option("--json", "print JSON")
    .action(async (target: string, own: Options) => {
      // The parent command takes the option if it has one with the same name.
      const options = { ...backup.opts(), ...own };
      const { config } = configOf(options);
      const manifest = await at(target, config, (archive) => verify(archive, progressPrinter()));
      report(options, manifest, `The backup ${shownOf(target)} is intact`);
    })
    .exitOverride();
  const restoring = program
    .command("restore")
    .description("restore a backup into an empty data folder, and an empty database")
    .argument("<target>", "folder or s3://BUCKET/NAME of the backup");
  addConfigOptions(restoring)
    .option(
      "--to-time <time>",
      "restore the shipped log of --backup-log to this time, such as 2026-11-22T10:00:00Z, or now",
    )
    .option("--json", "print JSON")
    .action(async (target: string, options: Options) => {
      const { config } = configOf(options);
      if (options["toTime"] !== undefined) return restoreToTime(config, target, options);
      const manifest = await at(target, config, (archive) => runRestore(config, archive));
      report(options, manifest, `The backup ${shownOf(target)} is restored`);
    });
}

async function runRestore(config: Config, archive: BackupAt): Promise<Manifest> {
  const location = dataLocation(config);
  const onProgress = progressPrinter();
  return withObjectsInto(config, location.databaseUrl, (objectsInto) =>
    withBlobs(config, async (blobs) => {
      const manifest = await restore({ archive, ...location, blobs, objectsInto, onProgress });
      const isUnused = !location.databaseUrl.startsWith("sqlite:") && objectsInto === undefined;
      if (isUnused && (manifest.objects?.count ?? 0) > 0) printNote(withoutLog);
      return manifest;
    }),
  );
}

const withoutLog =
  "Warning: objects and D1 databases do not run on PostgreSQL without their log. To have them, restore the backup with --object-log and --backup-folder.\n";

function insistOnPassphrase(config: Config): void {
  if (encryptionOf(config).passphrase === undefined)
    throw new ConfigError(
      "Expected --backup-passphrase-file or SELVEDGE_BACKUP_PASSPHRASE for --encrypt but received none",
    );
}

const shownOf = (target: string): string => (isBucket(target) ? target.replace(/\?.*/, "") : resolve(target));

async function at<T>(target: string, config: Config, work: (archive: BackupAt) => Promise<T>): Promise<T> {
  const archive = await openBackupAt(target, config);
  try {
    return await work(archive);
  } finally {
    await archive.store.close();
  }
}

async function restoreToTime(config: Config, target: string, options: Options): Promise<void> {
  const { databaseUrl, dataDir } = dataLocation(config);
  if (!databaseUrl.startsWith("sqlite:"))
    throw new ConfigError(
      "Expected no --database-url with --to-time. Restore into a data folder, back that up, and restore the backup into PostgreSQL",
    );
  const text = String(options["toTime"]);
  const toMs = text === "now" ? undefined : Date.parse(text);
  if (Number.isNaN(toMs))
    throw new ConfigError("Expected a time such as 2026-11-22T10:00:00Z, or now, for --to-time");
  const store = await openArchiveStore(target, config, "the backup folder");
  try {
    const databasePath = databaseUrl.slice("sqlite:".length);
    const [encryption, isWriter] = [encryptionOf(config), false];
    const files = await openLogFiles(store.files, encryption, { isWriter });
    const ofObjects = await openLogFiles(store.files, encryption, { isWriter, prefix: logPrefix });
    let objects: RestoredObjects | undefined;
    const also = async (): Promise<void> => {
      objects = await restoreObjectLog(ofObjects, dataDir, toMs);
    };
    const restored = await withBlobs(config, async (blobs) =>
      restoreLog({ files, toMs, dataDir, databasePath, blobs, also, onProgress: progressPrinter() }),
    );
    reportLog(options, restored, objects, shownOf(target));
  } finally {
    await store.close();
  }
}

function reportLog(
  options: Options,
  { restoredMs, blobs, missingBlobs }: RestoredLog,
  objects: RestoredObjects | undefined,
  target: string,
): void {
  const restoredTo = new Date(restoredMs).toISOString();
  const summary = {
    restored_to: restoredTo,
    blobs,
    missing_blobs: missingBlobs,
    objects: objects?.databases ?? 0,
    objects_with_gap: objects?.withGap ?? [],
  };
  warnOfMissing(missingBlobs);
  warnOfGaps(summary.objects_with_gap);
  print(
    options["json"] === true
      ? `${JSON.stringify(summary, null, 2)}\n`
      : `${target} is restored. The last change is of ${restoredTo}. Blobs: ${blobs}. Databases of objects: ${summary.objects}.\n`,
  );
}

function warnOfGaps(names: readonly string[]): void {
  if (names.length > 0)
    printNote(
      `Warning: the log lacks the last changes of ${names.length} databases of objects, for example ` +
        `${names.slice(0, missingShownMax).join(", ")}.\n`,
    );
}

function warnOfMissing(missing: readonly string[]): void {
  if (missing.length > 0)
    printNote(
      `Warning: the backup lacks ${missing.length} blobs that did not exist when it was written, for example ` +
        `${missing.slice(0, missingShownMax).join(", ")}.\n`,
    );
}

interface DataLocation {
  databaseUrl: string;
  dataDir: string;
}

function dataLocation(config: Config): DataLocation {
  if (config.ephemeral)
    throw new ConfigError(
      "Expected a data folder or a database, but received --ephemeral, which keeps nothing",
    );
  const dataDir = resolve(config.dataDir);
  return { databaseUrl: config.databaseUrl ?? `sqlite:${join(dataDir, "selvedge.db")}`, dataDir };
}

async function runBackup(config: Config, text: string): Promise<Manifest> {
  const { databaseUrl, dataDir } = dataLocation(config);
  yieldToNodes();
  const onProgress = progressPrinter();
  const source = await openSource(databaseUrl);
  try {
    return await at(text, config, (target) =>
      withObjectsAt(config, { source, dataDir }, (objectsAt) =>
        withBlobs(config, async (blobs) => backUp({ source, blobs, dataDir, objectsAt, target, onProgress })),
      ),
    );
  } finally {
    await source.close();
  }
}

/** Opens the blobs. A shared store gets a cache of its own, because a node may use that of the data folder. */
async function withBlobs<T>(config: Config, work: (blobs: Blobs) => Promise<T>): Promise<T> {
  const url = blobUrlOf(config);
  const isLocal = url.kind === "files";
  const folder = isLocal ? resolve(config.dataDir) : mkdtempSync(join(tmpdir(), "selvedge-blobs-"));
  const storage =
    url.kind === "postgres" ? await connectPostgres(dataLocation(config).databaseUrl) : undefined;
  try {
    const { blobs, closeBlobs } = await openBlobs(
      url,
      config,
      storage,
      folder,
      createLogger(config.logLevel),
    );
    try {
      return await work(blobs);
    } finally {
      await closeBlobs();
    }
  } finally {
    await storage?.close();
    if (!isLocal) rmSync(folder, { recursive: true });
  }
}

/** Prints a line of progress on stderr, at most once a second. */
function progressPrinter(): (progress: Progress) => void {
  let printedMs = performance.now();
  return ({ step, done, bytes }) => {
    if (performance.now() - printedMs < progressMs) return;
    printedMs = performance.now();
    const size = bytes === 0 ? "" : `, ${(bytes / 1e6).toFixed(1)} MB`;
    printNote(`${step}: ${done}${size}\n`);
  };
}

function report(options: Options, manifest: Manifest, sentence: string): void {
  const { missing_blobs: missing } = manifest;
  const summary = {
    schema: manifest.schema,
    created_on: manifest.created_on,
    rows: manifest.tables.reduce((total, { rows }) => total + rows, 0),
    blobs: manifest.blobs.count,
    objects: manifest.objects?.count ?? 0,
    objects_with_gap: manifest.objects?.with_gap ?? [],
    files: manifest.files.length,
    bytes: [...manifest.tables, ...manifest.files].reduce(
      (total, { bytes }) => total + bytes,
      manifest.blobs.bytes +
        manifest.blobs.total_bytes +
        (manifest.objects === undefined ? 0 : manifest.objects.bytes + manifest.objects.total_bytes),
    ),
    amended: manifest.amended,
    missing_blobs: missing,
    left_out: manifest.left_out,
  };
  warnOfMissing(missing);
  warnOfGaps(summary.objects_with_gap);
  print(
    options["json"] === true
      ? `${JSON.stringify(summary, null, 2)}\n`
      : `${sentence}: ${summary.rows} rows, ${summary.blobs} blobs, ${summary.objects} databases of objects, ${summary.files} files, ` +
          `${(summary.bytes / 1e6).toFixed(1)} MB.\nNot included: ${summary.left_out.join("; ")}.\n`,
  );
}
