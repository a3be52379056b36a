import type { Command } from "commander";
import { blobUrlOf, openBlobs, blobLocation } from "../platform/open-blobs.ts";
import { ConfigError } from "../platform/config/config.ts";
import type { Config } from "../platform/config/settings.ts";
import { createLogger } from "../platform/observability/logger.ts";
import { moveBlobs, type Moved } from "../platform/storage/blobs/move.ts";
import { claimLocation, recordLocation } from "../platform/storage/blobs/location.ts";
import { FolderOwner } from "../platform/storage/folder-owner.ts";
import { openStorage } from "../platform/storage/storage.ts";
import { databaseUrl } from "../platform/config/derived.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { print, printNote } from "./output.ts";

interface MoveOptions extends Record<string, unknown> {
  to: string;
  acceptLost?: true;
}

const progressMs = 1000;

/** `blobs move`: moves the bytes of a stopped installation to another store. */
export function registerBlobsCommand(program: Command): void {
  const blobs = program.command("blobs").description("the bytes of images, assets and large values");
  const move = blobs
    .command("move")
    .description(
      "copy all bytes to another store, and make the installation use it; every node must be stopped",
    )
    .requiredOption("--to <url>", "the new --blob-url: files, postgres or s3://…")
    .option("--accept-lost", "if the bytes are in a folder of another node that is lost");
  addConfigOptions(move).action(async (options: MoveOptions) => {
    const { config } = configOf(options);
    print(await moveTo(config, options.to, options.acceptLost === true));
  });
  for (const command of [blobs, move]) command.exitOverride();
}

async function moveTo(config: Config, to: string, acceptsLost: boolean): Promise<string> {
  if (config.ephemeral) throw new ConfigError("Expected an installation without --ephemeral for blobs move");
  const from = blobUrlOf(config);
  const target = blobUrlOf(config, to, "--to");
  using _owner = new FolderOwner(config.dataDir); // no node uses the folder meanwhile
  await using stack = new AsyncDisposableStack();
  const storage = await openStorage(databaseUrl(config), config.databaseTimeoutSeconds * 1000);
  stack.defer(() => storage.close());
  const logger = createLogger(config.logLevel);
  const sourceLocation = await blobLocation(from, storage, config.dataDir);
  const location = await blobLocation(target, storage, config.dataDir);
  const recorded = await claimLocation(storage, sourceLocation);
  if (recorded.id === location.id) return `The bytes are in ${location.shown} already.`;
  if (recorded.id !== sourceLocation.id && !acceptsLost)
    throw new ConfigError(
      `This installation keeps its bytes in ${recorded.shown}, but --blob-url is ${sourceLocation.shown}. ` +
        "Run the command where those bytes can be read, with --blob-url as before; if they are lost, with --accept-lost.",
    );
  let moved: Moved = { copied: 0, copiedBytes: 0, skipped: 0 };
  if (sourceLocation.id !== location.id) {
    const source = await openBlobs(from, config, storage, config.dataDir, logger);
    stack.defer(source.closeBlobs);
    const destination = await openBlobs(target, config, storage, config.dataDir, logger);
    stack.defer(destination.closeBlobs);
    moved = await moveBlobs(source.blobs, destination.blobs, reporter());
  }
  await recordLocation(storage, location);
  return (
    `Copied blobs: ${moved.copied} (${moved.copiedBytes} bytes); there already: ${moved.skipped}. ` +
    `Start every node with --blob-url ${to}. The bytes in ${sourceLocation.shown} are no longer used.`
  );
}

/** Writes the progress to standard error, at most once a second. */
function reporter(): (moved: Moved) => void {
  let reportedAt = performance.now();
  return ({ copied, copiedBytes }) => {
    if (performance.now() - reportedAt < progressMs) return;
    reportedAt = performance.now();
    printNote(`copied blobs: ${copied} (${copiedBytes} bytes)`);
  };
}
