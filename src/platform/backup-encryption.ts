import { passphraseOf, passphraseVariable } from "./config/backup-passphrase.ts";
import { ConfigError } from "./config/config.ts";
import type { Config } from "./config/settings.ts";
import type { Encryption } from "./storage/archive/encrypted-store.ts";

/** The encryption of backups, from the settings. Throws ConfigError if the passphrase cannot be used. */
export const encryptionOf = (config: Config): Encryption => ({
  passphrase: passphraseOf(config),
  acceptsUnencrypted: config.backupUnencrypted,
});

/**
 * Throws ConfigError if the settings ask for encryption and for none, or if they ask for neither and backups
 * go to a bucket. `source` names the setting or command in the message.
 */
export function checkEncryption(config: Config, source: string, isBucket: boolean): void {
  const { passphrase } = encryptionOf(config);
  if (passphrase !== undefined && config.backupUnencrypted)
    throw new ConfigError("Expected either a backup passphrase or --backup-unencrypted but received both");
  if (passphrase === undefined && isBucket && !config.backupUnencrypted)
    throw new ConfigError(
      `Expected --backup-passphrase-file or ${passphraseVariable} for ${source}: a backup holds private keys and ` +
        "secrets, and this one goes to a bucket. Add --backup-unencrypted to write it without encryption",
    );
}
