import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { damaged } from "./errors.ts";

/*
 * The encryption of a file of an archive: a header, and chunks that AES-256-GCM seals one by one, as in the STREAM
 * construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015) and in age. The nonce of a chunk has its number and
 * whether it is the last one, so chunks that are missing, repeated or in another order do not open. The key is
 * derived from the path and from random bytes in the header, so neither does the content of another file.
 */
const magic = Buffer.from("SELVENC1");
const saltBytes = 32;
const headerBytes = magic.length + saltBytes;
const chunkBytes = 256 * 1024;
const tagBytes = 16;
const cipher = "aes-256-gcm";

/** Encrypts the content of the file with this path. `key` has 32 bytes. */
export async function* encrypted(
  key: Uint8Array,
  path: string,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const salt = randomBytes(saltBytes);
  const fileKey = fileKeyOf(key, path, salt);
  yield Buffer.concat([magic, salt]);
  let number = 0;
  for await (const { chunk, isLast } of chunksOf(content, chunkBytes)) {
    const seal = createCipheriv(cipher, fileKey, nonceOf(number++, isLast));
    yield Buffer.concat([seal.update(chunk), seal.final(), seal.getAuthTag()]);
  }
}

/** Decrypts content. Passes on only authenticated bytes. Throws a BackupError that names the path. */
export async function* decrypted(
  key: Uint8Array,
  path: string,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  let fileKey: Buffer | undefined;
  let number = 0;
  for await (const { chunk, isLast } of chunksOf(content, chunkBytes + tagBytes, headerBytes)) {
    if (fileKey === undefined) {
      if (isLast || !chunk.subarray(0, magic.length).equals(magic)) throw damaged(path, "is not encrypted");
      fileKey = fileKeyOf(key, path, chunk.subarray(magic.length));
      continue;
    }
    if (chunk.length < tagBytes) throw damaged(path);
    const opened = createDecipheriv(cipher, fileKey, nonceOf(number++, isLast));
    opened.setAuthTag(chunk.subarray(-tagBytes));
    const plain = opened.update(chunk.subarray(0, -tagBytes));
    try {
      opened.final();
    } catch {
      throw damaged(path);
    }
    yield plain;
  }
}

/** The size of the content of an encrypted file; negative for files that are too short. */
export function decryptedBytes(encryptedBytes: number): number {
  const body = encryptedBytes - headerBytes;
  return body - tagBytes * Math.max(1, Math.ceil(body / (chunkBytes + tagBytes)));
}

const fileKeyOf = (key: Uint8Array, path: string, salt: Uint8Array): Buffer =>
  Buffer.from(hkdfSync("sha256", key, salt, `selvedge archive file\0${path}`, 32));

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(number, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/** Content in chunks of one size, the first of which may have another. The last one is shorter, or may be empty. */
async function* chunksOf(
  content: AsyncIterable<Uint8Array>,
  bytesEach: number,
  firstBytes = bytesEach,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  let size = firstBytes;
  for await (const piece of content) {
    waiting.push(piece);
    bytes += piece.length;
    if (bytes <= size) continue;
    const joined = Buffer.concat(waiting);
    let at = 0;
    // At least one byte is held back, so that the last chunk can be marked as the last.
    for (; joined.length - at > size; size = bytesEach) {
      yield { chunk: joined.subarray(at, at + size), isLast: false };
      at += size;
    }
    waiting = [joined.subarray(at)];
    bytes = joined.length - at;
  }
  yield { chunk: Buffer.concat(waiting), isLast: true };
}
