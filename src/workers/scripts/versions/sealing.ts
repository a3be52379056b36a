import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts secrets for storage, with a key derived from the installation's pepper. */
export class Sealer {
  readonly #key: Uint8Array;

  constructor(pepper: string) {
    this.#key = new Uint8Array(hkdfSync("sha256", pepper, "", "script secrets", 32));
  }

  /** `collection` identifies where the secret belongs: the text cannot be decrypted in another collection. */
  seal(secret: string, collection: string): string {
    const nonce = randomBytes(nonceBytes);
    const encryption = createCipheriv(cipher, this.#key, nonce).setAAD(Buffer.from(collection));
    const parts = [nonce, encryption.update(secret, "utf8"), encryption.final()];
    return Buffer.concat([...parts, encryption.getAuthTag()]).toString("base64");
  }

  open(sealed: string, collection: string): string {
    const bytes = Buffer.from(sealed, "base64");
    const decryption = createDecipheriv(cipher, this.#key, bytes.subarray(0, nonceBytes))
      .setAAD(Buffer.from(collection))
      .setAuthTag(bytes.subarray(-tagBytes));
    const text = decryption.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8");
    return text + decryption.final("utf8");
  }
}
