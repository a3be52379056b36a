import { createCipheriv, createDecipheriv, randomBytes, scrypt, type ScryptOptions } from "node:crypto";
import { z } from "zod";
import { BackupError } from "./errors.ts";

/** The form in files of a random key that is encrypted with a passphrase. Bytes are base64. */
export type WrappedKey = z.infer<typeof wrappedKey>;
/** The cost is limited, because a file may be forged: 128 MiB (n · r · 128 bytes) and one pass. */
export const wrappedKey = z.object({
  kdf: z.literal("scrypt"),
  n: z.literal([2 ** 14, 2 ** 15, 2 ** 16, 2 ** 17]),
  r: z.int().min(1).max(8),
  p: z.literal(1),
  salt: z.base64(),
  cipher: z.literal("aes-256-gcm"),
  nonce: z.base64().length(16),
  key: z.base64().length(64), // 32 bytes and a tag
});

/** 128 MiB and about half a second of one core for each guess. */
const defaultCost = { n: 2 ** 17, r: 8, p: 1 } as const;
const tagBytes = 16;

/** A new random key, and how it is written to a file. */
export async function newKey(
  passphrase: string,
  cost: Pick<WrappedKey, "n" | "r" | "p"> = defaultCost,
): Promise<{ key: Buffer; wrapped: WrappedKey }> {
  const key = randomBytes(32);
  const salt = randomBytes(32);
  const nonce = randomBytes(12);
  const parameters = { kdf: "scrypt" as const, ...cost, salt: salt.toString("base64") };
  const seal = createCipheriv("aes-256-gcm", await stretched(passphrase, parameters), nonce);
  const bytes = Buffer.concat([seal.update(key), seal.final(), seal.getAuthTag()]);
  const wrapped = { nonce: nonce.toString("base64"), key: bytes.toString("base64") };
  return { key, wrapped: { ...parameters, cipher: "aes-256-gcm", ...wrapped } };
}

/** Decrypts the key. Throws BackupError if the passphrase is wrong. `shown` names the encrypted backup. */
export async function unwrap(wrapped: WrappedKey, passphrase: string, shown: string): Promise<Buffer> {
  const nonce = Buffer.from(wrapped.nonce, "base64");
  const bytes = Buffer.from(wrapped.key, "base64");
  const open = createDecipheriv("aes-256-gcm", await stretched(passphrase, wrapped), nonce);
  open.setAuthTag(bytes.subarray(-tagBytes));
  const key = open.update(bytes.subarray(0, -tagBytes));
  try {
    open.final();
  } catch {
    throw new BackupError(
      `The passphrase does not open ${shown}: it was encrypted with another one. ` +
        "Check --backup-passphrase-file or SELVEDGE_BACKUP_PASSPHRASE.",
    );
  }
  return key;
}

type Cost = Pick<WrappedKey, "n" | "r" | "p" | "salt">;

async function stretched(passphrase: string, { n, r, p, salt }: Cost): Promise<Buffer> {
  const options: ScryptOptions = { N: n, r, p, maxmem: 128 * n * r + 128 * r * p + 2 ** 20 };
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize("NFC"), Buffer.from(salt, "base64"), 32, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}
