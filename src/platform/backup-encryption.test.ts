import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { product, text } from "../../test/helpers/sources.ts";
import { temporaryFolder } from "../../test/helpers/process.ts";
import { checkEncryption, encryptionOf } from "./backup-encryption.ts";
import { loadConfig } from "./config/config.ts";
import type { Config } from "./config/settings.ts";

const folder = temporaryFolder();
const config = (flags: Partial<Config> = {}): Config => loadConfig(flags, {}, undefined).config;
const fileWith = (text: string): string => {
  const file = join(folder, String(text.length));
  writeFileSync(file, text);
  return file;
};
afterEach(() => vi.unstubAllEnvs());

it("reads the passphrase of a file, without the end of its line, or of the environment", () => {
  expect(encryptionOf(config()).passphrase).toBeUndefined();
  for (const text of ["twelve chars", "twelve chars\n", "twelve chars\r\n"])
    expect(encryptionOf(config({ backupPassphraseFile: fileWith(text) })).passphrase).toBe("twelve chars");
  vi.stubEnv("SELVEDGE_BACKUP_PASSPHRASE", "in the environment");
  expect(encryptionOf(config()).passphrase).toBe("in the environment");
  const both = config({ backupPassphraseFile: fileWith("twelve chars") });
  expect(() => encryptionOf(both)).toThrow("received both");
});

it("refuses a passphrase that is short or has several lines, and a file that cannot be read, without its content", () => {
  for (const text of ["", "\n", "eleven char", "two lines, of\nwhich one is", "x".repeat(5000)])
    expect(() => encryptionOf(config({ backupPassphraseFile: fileWith(text) }))).toThrow(
      /^Expected a passphrase of one line with at least 12 characters in \S+ but received another text$/,
    );
  expect(() => encryptionOf(config({ backupPassphraseFile: folder }))).toThrow(
    "Expected a file with a passphrase",
  );
  vi.stubEnv("SELVEDGE_BACKUP_PASSPHRASE", "short");
  expect(() => encryptionOf(config())).toThrow("in SELVEDGE_BACKUP_PASSPHRASE but received another text");
});

it("requires either a passphrase or --backup-unencrypted for a bucket", () => {
  const backupPassphraseFile = fileWith("twelve chars");
  const refused: [Partial<Config>, boolean, string][] = [
    [{}, true, "for the backup: a backup holds private keys"],
    [{ backupPassphraseFile, backupUnencrypted: true }, true, "received both"],
    [{ backupPassphraseFile, backupUnencrypted: true }, false, "received both"],
  ];
  for (const [flags, isBucket, message] of refused)
    expect(() => checkEncryption(config(flags), "the backup", isBucket)).toThrow(message);
  for (const [flags, isBucket] of [
    [{}, false],
    [{ backupUnencrypted: true }, true],
    [{ backupPassphraseFile }, true],
    [{ backupPassphraseFile }, false],
  ] as const)
    checkEncryption(config(flags), "the backup", isBucket);
});

it("encrypts the shipped logs, too: the files of a store are opened in one way", () => {
  const users = product.flatMap((file) =>
    text(file)
      .split("\n")
      .filter((line) => /store\.files(?!\()/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(users.length).toBeGreaterThan(2);
  const others = users.filter((line) => !line.includes("openLogFiles(store.files, "));
  expect(others.toSorted()).toEqual([
    // writes a random id beside the log
    "src/platform/object-log/open-object-log.ts: await checkSharedStore(shared.storage, store.files);",
    "src/platform/storage/archive/encrypted-store.ts: this.files = store.files;",
  ]);
});
