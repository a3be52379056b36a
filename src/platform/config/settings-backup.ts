import { forms } from "./forms.ts";
import type { Setting } from "./setting.ts";

/** Settings of periodic backups. */
export const backupSettings = {
  backupEvery: {
    kind: "text",
    form: forms.duration,
    flag: "backup-every",
    env: "SELVEDGE_BACKUP_EVERY",
    describe:
      "time between periodic backups, such as 30m, 6h or 1d (default: none are made); set it on one node",
  },
  backupFolder: {
    kind: "text",
    flag: "backup-folder",
    env: "SELVEDGE_BACKUP_FOLDER",
    describe:
      "folder of the periodic backups, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME; each backup is named after its time",
  },
  backupPassphraseFile: {
    kind: "text",
    flag: "backup-passphrase-file",
    env: "SELVEDGE_BACKUP_PASSPHRASE_FILE",
    describe:
      "file with the passphrase that backups and the shipped log are encrypted with; or the passphrase itself in the environment variable SELVEDGE_BACKUP_PASSPHRASE (default: they are not encrypted)",
  },
  backupUnencrypted: {
    kind: "flag",
    flag: "backup-unencrypted",
    env: "SELVEDGE_BACKUP_UNENCRYPTED",
    default: false,
    describe:
      "write backups to a bucket without encryption; with a passphrase: verify and restore unencrypted backups, too",
  },
  backupAccessKeyId: {
    kind: "text",
    flag: "backup-access-key-id",
    env: "SELVEDGE_BACKUP_ACCESS_KEY_ID",
    describe: "key id for backups in a bucket (default: as for the blobs)",
  },
  backupSecretAccessKey: {
    kind: "text",
    secret: true,
    flag: "backup-secret-access-key",
    env: "SELVEDGE_BACKUP_SECRET_ACCESS_KEY",
    describe: "secret key for backups in a bucket (default: as for the blobs)",
  },
  backupLog: {
    kind: "text",
    form: forms.duration,
    flag: "backup-log",
    env: "SELVEDGE_BACKUP_LOG",
    describe:
      "time between shipments of the log of SQLite to the backup folder, such as 1s or 10s, for restores to any time (default: it is not shipped)",
  },
  backupLogDays: {
    kind: "count",
    min: 1,
    max: 10_000,
    flag: "backup-log-days",
    env: "SELVEDGE_BACKUP_LOG_DAYS",
    default: 7,
    describe: "days that the shipped log covers, at least",
  },
  objectLog: {
    kind: "text",
    form: forms.duration,
    flag: "object-log",
    env: "SELVEDGE_OBJECT_LOG",
    describe:
      "time between shipments of the logs of Durable Objects and D1 databases to the backup folder, such as 1s or 10s, for bookmarks, time travel and restores to any time (default: they are not shipped)",
  },
  objectLogDays: {
    kind: "count",
    min: 1,
    max: 10_000,
    flag: "object-log-days",
    env: "SELVEDGE_OBJECT_LOG_DAYS",
    default: 30,
    describe: "days that the shipped logs of objects cover, at least",
  },
  objectLogFirst: {
    kind: "flag",
    flag: "object-log-first",
    env: "SELVEDGE_OBJECT_LOG_FIRST",
    default: false,
    describe:
      "hold back everything that a Durable Object or a D1 database sends until its writes are shipped",
  },
  backupKeep: {
    kind: "count",
    min: 1,
    max: 10_000,
    flag: "backup-keep",
    env: "SELVEDGE_BACKUP_KEEP",
    default: 7,
    describe: "periodic backups to keep; older ones are deleted",
  },
  backupKeepDays: {
    kind: "count",
    min: 0,
    max: 10_000,
    flag: "backup-keep-days",
    env: "SELVEDGE_BACKUP_KEEP_DAYS",
    default: 0,
    describe: "days after which a periodic backup is deleted, except the newest; 0 for no limit",
  },
} as const satisfies Record<string, Setting>;
