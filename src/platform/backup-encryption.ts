import { passphraseOf, passphraseVariable } from "./config/backup-passphrase.ts";
import { ConfigError } from "./config/config.ts";
import type { Config } from "./config/settings.ts";
import type { Encryption } from "./storage/archive/encrypted-place.ts";

/** How the settings say that backups are encrypted. Throws ConfigError if their passphrase cannot be used. */
export const encryptionOf = (config: Config): Encryption => ({
  passphrase: passphraseOf(config),
  acceptsUnencrypted: config.backupUnencrypted,
});

/** Throws ConfigError unless the settings say how backups that are written to a place are encrypted. */
export function checkEncryption(config: Config, source: string, isBucket: boolean): void {
  const { passphrase } = encryptionOf(config);
  if (passphrase !== undefined && config.backupUnencrypted)
    throw new ConfigError("Expected a passphrase of the backups or --backup-unencrypted but received both");
  if (passphrase === undefined && isBucket && !config.backupUnencrypted)
    throw new ConfigError(
      `Expected --backup-passphrase-file or ${passphraseVariable} for ${source}: a backup holds private keys and ` +
        "secrets, and this one is for a bucket. Add --backup-unencrypted to write it as it is",
    );
}
