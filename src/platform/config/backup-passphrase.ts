import { readFileSync } from "node:fs";
import { ConfigError } from "./config.ts";
import type { Config } from "./settings.ts";

export const passphraseVariable = "SELVEDGE_BACKUP_PASSPHRASE";
const charactersMin = 12;
const charactersMax = 4096;

/**
 * The passphrase of backups; undefined if there is none. It is not an argument, because other users of the machine
 * see those. Throws ConfigError.
 */
export function passphraseOf({ backupPassphraseFile: file }: Config): string | undefined {
  const variable = process.env[passphraseVariable] || undefined;
  if (file === undefined) return variable && checked(variable, passphraseVariable);
  if (variable !== undefined)
    throw new ConfigError(
      `Expected either --backup-passphrase-file or ${passphraseVariable} but received both`,
    );
  try {
    return checked(readFileSync(file, "utf8").replace(/\r?\n$/, ""), file);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(
      `Expected a file with a passphrase for --backup-passphrase-file but received "${file}": ${(error as Error).message}`,
    );
  }
}

function checked(passphrase: string, source: string): string {
  if (passphrase.length >= charactersMin && passphrase.length <= charactersMax && !/[\r\n]/.test(passphrase))
    return passphrase;
  throw new ConfigError(
    `Expected a passphrase of one line with at least ${charactersMin} characters in ${source} but received another text`,
  );
}
