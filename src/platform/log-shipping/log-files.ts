import { z } from "zod";
import type { Archive } from "../storage/archive/archive.ts";
import { EncryptedArchive } from "../storage/archive/encrypted-archive.ts";
import { needsPassphrase, refuseUnencrypted, type Encryption } from "../storage/archive/encrypted-store.ts";
import { BackupError, damaged } from "../storage/archive/errors.ts";
import { contentStream, readText } from "../storage/archive/manifest-files.ts";
import { newKey, unwrap, wrappedKey } from "../storage/archive/passphrase-key.ts";
import { chainNames, logFolder } from "./chain.ts";

const KeySchema = z.object({ encryption: z.literal(1), key: wrappedKey });

/**
 * Opens the files of a shipped log, which are below `prefix`. Encrypted chains have one key in common,
 * because they share blobs. Throws BackupError if the passphrase is wrong or missing, or if there is one and
 * the existing log is not encrypted.
 */
export async function openLogFiles(
  files: Archive,
  encryption: Encryption,
  { isWriter, prefix = logFolder }: { isWriter: boolean; prefix?: string },
): Promise<Archive> {
  const shown = `The log at ${files.shown}`;
  const keyFile = `${prefix}key.json`;
  const { passphrase } = encryption;
  const found = await readText(files, keyFile);
  if (found !== undefined) {
    if (passphrase === undefined) throw needsPassphrase(shown);
    return new EncryptedArchive(files, await unwrap(keyOf(found, keyFile), passphrase, shown), prefix);
  }
  if (passphrase === undefined) return files;
  if (await hasLog(files, prefix)) {
    if (isWriter)
      throw new BackupError(
        `${shown} is not encrypted, although there is a passphrase. Set --backup-folder to another folder.`,
      );
    refuseUnencrypted(shown, encryption);
  }
  if (!isWriter) return files;
  const { key, wrapped } = await newKey(passphrase);
  await files.write(keyFile, contentStream(`${JSON.stringify({ encryption: 1, key: wrapped }, null, 2)}\n`));
  return new EncryptedArchive(files, key, prefix);
}

const hasLog = async (files: Archive, prefix: string): Promise<boolean> =>
  prefix === logFolder ? (await chainNames(files)).length > 0 : (await files.folders(prefix)).length > 0;

function keyOf(text: string, keyFile: string): z.infer<typeof wrappedKey> {
  try {
    return KeySchema.parse(JSON.parse(text)).key;
  } catch {
    throw damaged(keyFile);
  }
}

/** An archive that is opened at its first use. After a failure the next use tries again. */
export function openedLater(shown: string, open: () => Promise<Archive>): Archive {
  let opening: Promise<Archive> | undefined;
  const opened = (): Promise<Archive> => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  return {
    shown,
    write: async (path, content) => (await opened()).write(path, content),
    read: async (path) => (await opened()).read(path),
    remove: async (path) => (await opened()).remove(path),
    list: async function* (prefix) {
      yield* (await opened()).list(prefix);
    },
    folders: async (prefix) => (await opened()).folders(prefix),
  };
}
