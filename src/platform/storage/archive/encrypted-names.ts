import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

const ivBytes = 16;
/** File names have at most 255 characters, and get a suffix while the file is written. */
const charactersMax = 200;
const goesOn = "~";

/**
 * Encrypts the names of files and folders. Equal paths give equal names, so that a file is found without a
 * list. Uses AES-CTR with a synthetic initialization vector, an HMAC of the path, which also authenticates
 * (Rogaway and Shrimpton 2006).
 */
export class EncryptedNames {
  readonly #macKey: Buffer;
  readonly #cipherKey: Buffer;

  /** `key` has 32 bytes. */
  constructor(key: Uint8Array) {
    const keys = Buffer.from(hkdfSync("sha256", key, "", "selvedge archive names", 64));
    this.#macKey = keys.subarray(0, 32);
    this.#cipherKey = keys.subarray(32);
  }

  /** The encrypted form of a path. It ends in a slash if the path does. */
  encrypt(path: string): string {
    const names = path.split("/");
    return names
      .map((name, depth) => (name === "" ? "" : this.#encryptName(names.slice(0, depth).join("/"), name)))
      .join("/");
  }

  /** Undefined for paths that `encrypt` did not make. */
  decrypt(path: string): string | undefined {
    let parent = "";
    const names: string[] = [];
    for (const name of path.replaceAll(`${goesOn}/`, "").split("/")) {
      const plain = this.#decryptName(parent, name);
      if (plain === undefined) return undefined;
      names.push(plain);
      parent = names.join("/");
    }
    return parent;
  }

  #encryptName(parent: string, name: string): string {
    const iv = this.#ivOf(parent, name);
    const bytes = Buffer.concat([iv, createCipheriv("aes-256-ctr", this.#cipherKey, iv).update(name)]);
    const pieces = bytes.toString("base64url").match(new RegExp(`.{1,${charactersMax}}`, "g")) ?? [];
    return pieces.join(`${goesOn}/`);
  }

  #decryptName(parent: string, name: string): string | undefined {
    const bytes = Buffer.from(name, "base64url");
    if (bytes.length <= ivBytes) return undefined;
    const iv = bytes.subarray(0, ivBytes);
    const open = createDecipheriv("aes-256-ctr", this.#cipherKey, iv);
    const plain = open.update(bytes.subarray(ivBytes)).toString();
    return timingSafeEqual(iv, this.#ivOf(parent, plain)) ? plain : undefined;
  }

  #ivOf(parent: string, name: string): Buffer {
    const mac = createHmac("sha256", this.#macKey).update(`${parent}\0${name}`);
    return mac.digest().subarray(0, ivBytes);
  }
}
