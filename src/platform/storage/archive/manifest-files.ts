import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import type { Archive } from "./archive.ts";
import { BackupError, damaged } from "./errors.ts";

export const manifestFile = "manifest.json";
export const digestFile = "manifest.sha256";
/** The folder of one attempt to make a backup in a bucket; its manifest names it. */
export const runPattern = /^run-[0-9a-f]{16}$/;

/** The line that `sha256sum -c manifest.sha256` checks. */
export const digestLine = (manifest: string): string =>
  `${createHash("sha256").update(manifest).digest("hex")}  ${manifestFile}\n`;

/**
 * Opens a complete archive: the text of its manifest, and its files, which are in the folder of a run if the
 * archive was written to a bucket. Throws if there is none, or if the manifest does not have its digest.
 */
export async function openArchive(
  top: Archive,
  below: (folder: string) => Archive,
): Promise<{ files: Archive; manifest: string }> {
  const manifest = await readText(top, manifestFile);
  if (manifest === undefined)
    throw new BackupError(`Expected a backup at ${top.shown} but it has no ${manifestFile}.`);
  const run = runOf(manifest);
  const files = run === undefined ? top : below(run);
  const digest = await readText(files, digestFile);
  if (digest === undefined)
    throw new BackupError(`Expected a backup at ${top.shown} but it has no ${digestFile}.`);
  if (digest !== digestLine(manifest)) throw damaged(manifestFile);
  return { files, manifest };
}

/** The run that a manifest names, before its digest is checked. */
export function runOf(manifest: string): string | undefined {
  return /^ {2}"run": "(run-[0-9a-f]{16})",$/m.exec(manifest)?.[1];
}

export async function readText(files: Archive, path: string): Promise<string | undefined> {
  const found = await files.read(path);
  return found && text(found.stream as AsyncIterable<Buffer>);
}

export async function* contentStream(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content);
}
