import { buffer, text } from "node:stream/consumers";
import { z } from "zod";
import type { Archive, ArchiveStore, NewArchive } from "./archive.ts";
import { EncryptedArchive } from "./encrypted-archive.ts";
import { BackupError, damaged } from "./errors.ts";
import { contentStream, manifestFile } from "./manifest-files.ts";
import { decrypted, encrypted } from "./part-cipher.ts";
import { newKey, unwrap, wrappedKey } from "./passphrase-key.ts";

/** How backups are encrypted. */
export interface Encryption {
  /** Undefined: new backups are not encrypted. */
  passphrase: string | undefined;
  /** Whether unencrypted backups are accepted although there is a passphrase. */
  acceptsUnencrypted: boolean;
}

/** The manifest of an encrypted archive: its key, and its encrypted text as base64. */
const envelope = z.object({ encryption: z.literal(1), key: wrappedKey, manifest: z.base64() });

/**
 * A store whose archives are encrypted. Each has a random key, which its manifest contains, encrypted with the
 * passphrase.
 */
export class EncryptedArchiveStore implements ArchiveStore {
  readonly shown: string;
  /** Not encrypted by this class. */
  readonly files: Archive;
  readonly #store: ArchiveStore;
  readonly #encryption: Encryption;

  constructor(store: ArchiveStore, encryption: Encryption) {
    this.shown = store.shown;
    this.files = store.files;
    this.#store = store;
    this.#encryption = encryption;
  }

  async begin(name: string): Promise<NewArchive> {
    const archive = await this.#store.begin(name);
    const { passphrase } = this.#encryption;
    if (passphrase === undefined) return archive;
    const { key, wrapped } = await newKey(passphrase);
    return {
      files: new EncryptedArchive(archive.files, key),
      async complete(manifest) {
        const sealed = await buffer(encrypted(key, manifestFile, contentStream(manifest)));
        const sealedManifest = { encryption: 1, key: wrapped, manifest: sealed.toString("base64") };
        await archive.complete(`${JSON.stringify(sealedManifest, null, 2)}\n`);
      },
      discard: () => archive.discard(),
    };
  }

  async open(name: string): Promise<{ files: Archive; manifest: string }> {
    const { files, manifest } = await this.#store.open(name);
    const { passphrase } = this.#encryption;
    const parsed = objectIn(manifest);
    if (parsed === undefined) throw damaged(manifestFile, "is no JSON object");
    if (!("encryption" in parsed)) {
      refuseUnencrypted(files.shown, this.#encryption);
      return { files, manifest };
    }
    if (passphrase === undefined) throw needsPassphrase(files.shown);
    const { data } = envelope.safeParse(parsed);
    if (data === undefined) throw damaged(manifestFile, "has no key that this program can read");
    const key = await unwrap(data.key, passphrase, files.shown);
    const sealed = Buffer.from(data.manifest, "base64");
    const plain = await text(decrypted(key, manifestFile, oneChunk(sealed)));
    return { files: new EncryptedArchive(files, key), manifest: plain };
  }

  names = (): Promise<string[]> => this.#store.names();
  remove = (name: string): Promise<void> => this.#store.remove(name);
  removeAttempts = (name: string): Promise<void> => this.#store.removeAttempts(name);
  close = (): Promise<void> => this.#store.close();
}

/**
 * Refuses an unencrypted backup when there is a passphrase, because it may be forged, unless the operator
 * accepts it.
 */
export function refuseUnencrypted(shown: string, encryption: Encryption): void {
  if (encryption.passphrase !== undefined && !encryption.acceptsUnencrypted)
    throw new BackupError(
      `${shown} is not encrypted, although there is a passphrase. It may be a forgery. ` +
        "If that is as it should be, add --backup-unencrypted.",
    );
}

export const needsPassphrase = (shown: string): BackupError =>
  new BackupError(
    `${shown} is encrypted. Set --backup-passphrase-file or SELVEDGE_BACKUP_PASSPHRASE to its passphrase.`,
  );

function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
