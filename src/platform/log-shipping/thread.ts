import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { Config } from "../config/settings.ts";
import { durationMs } from "../config/forms.ts";
import { encryptionOf } from "../backup-encryption.ts";
import { openArchiveStore } from "../open-archive-store.ts";
import { FileBlobs } from "../storage/blobs.ts";
import type { CheckpointOptions } from "../storage/checkpointer.ts";
import { endsWithin } from "../util/ends-within.ts";
import { unawaited } from "../util/uncaught.ts";
import { BlobShipper } from "./blob-shipper.ts";
import { LinkedBlobs } from "./linked-blobs.ts";
import { LogCopier } from "./log-copier.ts";
import { openedLater, openLogFiles } from "./log-files.ts";
import { LogShipper, type Report } from "./log-shipper.ts";
import { Spool, spoolFolder, timesPath } from "./spool.ts";

/*
 * A worker thread that makes checkpoints and ships the log. It replaces storage/checkpoint.ts when the log is
 * shipped.
 */

export interface LogThreadData {
  config: Config;
  /** Whether the blobs are files of the data folder. */
  shipsBlobs: boolean;
}

type Message = "renew" | "stop" | { blob: string };

const dayMs = 24 * 60 * 60 * 1000;
/** How long the end of the process waits for the target. */
const endMs = 5000;

const { path, config, shipsBlobs, indexDescriptor } = workerData as CheckpointOptions &
  LogThreadData & { indexDescriptor: number };
const target = config.backupFolder!;
const spool = new Spool(spoolFolder(config.dataDir));
const copier = new LogCopier(path, indexDescriptor, spool, timesPath(config.dataDir));
const store = await openArchiveStore(target, config, "--backup-folder");
const files = openedLater(store.shown, () =>
  openLogFiles(store.files, encryptionOf(config), { isWriter: true }),
);
const blobs = shipsBlobs
  ? new BlobShipper(
      new FileBlobs(join(config.dataDir, "blobs")),
      new LinkedBlobs(join(config.dataDir, "blobs"), spool.folder),
      files,
    )
  : undefined;
const report = (news: Report): void => parentPort?.postMessage(news, []);
const shipper = new LogShipper({
  copier,
  spool,
  blobs,
  files,
  target,
  dataDir: config.dataDir,
  keepMs: config.backupLogDays * dayMs,
  report,
});
shipper.tick();
const timer = setInterval(() => shipper.tick(), durationMs(config.backupLog!));

parentPort?.on("message", (message: Message) => {
  if (message === "stop") unawaited(end());
  else if (message === "renew") parentPort?.postMessage(copier.renew(), []);
  else blobs?.note(message.blob);
});

async function end(): Promise<void> {
  clearInterval(timer);
  await endsWithin(endMs, shipper.end());
  copier.close();
  await store.close();
  process.exit(); // of this thread
}
