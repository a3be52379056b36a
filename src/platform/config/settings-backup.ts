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
    describe: "folder of the periodic backups, each in a folder with its time",
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
