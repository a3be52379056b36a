import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import { EncryptedNames } from "./encrypted-names.ts";
import { decrypted, decryptedBytes, encrypted } from "./part-cipher.ts";
import { newKey, unwrap, wrappedKey } from "./passphrase-key.ts";

const key = randomBytes(32);
const chunkBytes = 256 * 1024;
const headerBytes = 40;
const sealedBytes = chunkBytes + 16;

/** Bytes in pieces of one size. */
async function* inPieces(bytes: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
const encrypt = async (bytes: Buffer, path = "some/path", pieceBytes = 100_000): Promise<Buffer> =>
  buffer(encrypted(key, path, inPieces(bytes, pieceBytes)));
const decrypt = async (bytes: Buffer, path = "some/path", pieceBytes = 70_000): Promise<Buffer> =>
  buffer(decrypted(key, path, inPieces(bytes, pieceBytes)));

describe("the encryption of a file", () => {
  const sizes = fc.oneof(
    fc.constantFrom(0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 2 * chunkBytes, 2 * chunkBytes + 1),
    fc.nat(3 * chunkBytes),
  );
  const pieces = fc.integer({ min: 1000, max: 2 * chunkBytes });

  it("gives back every content, and its size, however it arrives", async () => {
    await fc.assert(
      fc.asyncProperty(sizes, pieces, pieces, async (size, writtenAs, readAs) => {
        const content = randomBytes(size);
        const sealed = await encrypt(content, "a/b", writtenAs);
        expect((await decrypt(sealed, "a/b", readAs)).equals(content)).toBe(true);
        expect(decryptedBytes(sealed.length)).toBe(size);
      }),
      { numRuns: 40 },
    );
  });

  it("refuses a flipped bit, a cut, and additions, wherever they are", async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), fc.constantFrom("flip", "cut", "add"), async (size, seed, how) => {
        const sealed = await encrypt(randomBytes(size));
        const at = seed % sealed.length;
        if (how === "flip") sealed[at]! ^= 1 << (seed % 8);
        const wrong =
          how === "cut"
            ? sealed.subarray(0, at)
            : how === "add"
              ? Buffer.concat([sealed, sealed.subarray(at)])
              : sealed;
        await expect(decrypt(wrong)).rejects.toThrow("The backup is damaged: some/path ");
      }),
      { numRuns: 60 },
    );
  });

  it("refuses chunks that are missing, repeated, in another order, or of another file", async () => {
    const [one, other] = [
      await encrypt(randomBytes(4 * chunkBytes)),
      await encrypt(randomBytes(4 * chunkBytes)),
    ];
    const chunk = (of: Buffer, n: number): Buffer =>
      of.subarray(headerBytes + n * sealedBytes, headerBytes + (n + 1) * sealedBytes);
    const joined = (...chunks: Buffer[]): Buffer => Buffer.concat([one.subarray(0, headerBytes), ...chunks]);
    const [a, b, c, d] = [0, 1, 2, 3].map((n) => chunk(one, n)) as [Buffer, Buffer, Buffer, Buffer];
    expect((await decrypt(joined(a, b, c, d))).length).toBe(4 * chunkBytes);
    for (const wrong of [
      joined(),
      joined(a, b, c),
      joined(a, b, d),
      joined(b, c, d),
      joined(a, c, b, d),
      joined(a, b, b, c, d),
      joined(a, b, c, d, d),
      joined(a, chunk(other, 1), c, d),
      other.subarray(0, 0),
    ])
      await expect(decrypt(wrong)).rejects.toThrow("The backup is damaged: some/path ");
    await expect(decrypt(one, "other/path")).rejects.toThrow("The backup is damaged: other/path ");
  });

  it("passes on no bytes before they are authenticated", async () => {
    const sealed = await encrypt(randomBytes(3 * chunkBytes));
    sealed[headerBytes + sealedBytes + 5]! ^= 1;
    let passedBytes = 0;
    const reading = async (): Promise<void> => {
      for await (const chunk of decrypted(key, "some/path", inPieces(sealed, 50_000)))
        passedBytes += chunk.length;
    };
    await expect(reading()).rejects.toThrow("damaged");
    expect(passedBytes).toBe(chunkBytes);
  });
});

describe("encrypted names", () => {
  const names = new EncryptedNames(key);
  const name = fc.stringMatching(/^[\w.@-]{1,180}$/);

  it("come back, are always the same, and are names of files", () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (parts) => {
        const path = parts.join("/");
        const hidden = names.encrypt(path);
        expect(names.decrypt(hidden)).toBe(path);
        expect(names.encrypt(path)).toBe(hidden);
        expect(hidden).toMatch(/^[\w~-]{1,201}(\/[\w~-]{1,201})*$/);
        expect(names.encrypt(`${path}/`)).toBe(`${hidden}/`);
      }),
    );
  });

  it("are rejected with another key, in another folder, or when they are changed", () => {
    const [folder, file] = names.encrypt("folder/file").split("/") as [string, string];
    expect(names.decrypt(`${folder}/${file}`)).toBe("folder/file");
    for (const wrong of ["log", "", "manifest.json", file, `${file}/${folder}`, `${folder}/${file.slice(1)}`])
      expect(names.decrypt(wrong), wrong).toBeUndefined();
    expect(new EncryptedNames(randomBytes(32)).decrypt(folder)).toBeUndefined();
  });
});

it("a passphrase opens its key only, and only with the parameters that it was written with", async () => {
  const { key: made, wrapped } = await newKey("correct horse battery", { n: 2 ** 15, r: 8, p: 1 });
  expect(await unwrap(wrapped, "correct horse battery", "x")).toEqual(made);
  expect(JSON.stringify(wrapped)).not.toContain(made.toString("base64").slice(0, 40));
  const salt = randomBytes(32).toString("base64");
  for (const cost of [{ n: 2 ** 20 }, { r: 16 }, { p: 4 }])
    expect(wrappedKey.safeParse({ ...wrapped, ...cost }).success).toBe(false); // memory that a forger could choose
  for (const [candidate, passphrase] of [
    [wrapped, "correct horse batteri"],
    [{ ...wrapped, salt }, "correct horse battery"],
    [{ ...wrapped, n: 2 ** 14 }, "correct horse battery"],
  ] as const)
    await expect(unwrap(candidate, passphrase, "The backup x")).rejects.toThrow("does not open The backup x");
});
