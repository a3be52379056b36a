import { createHash, generateKeyPairSync } from "node:crypto";
import { ByteWriter } from "../name-server/wire/byte-writer.ts";
import { nameBytes, nameKey } from "../name-server/wire/name.ts";

/** ECDSA with P-256 and SHA-256 (RFC 6605): short signatures that are fast to make. */
export const algorithm = 13;
/** SHA-256 (RFC 4509). */
export const digestType = 2;
/** One key signs everything, so both bits are set: zone key, and secure entry point for the parent's DS. */
export const keyFlags = 257;
const protocol = 3;

export interface NewKey {
  /** PKCS #8, DER, in base64. */
  privateKey: string;
  /** The two coordinates of the point, as in a DNSKEY record, in base64. */
  publicKey: string;
}

export function newKey(): NewKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x, y } = publicKey.export({ format: "jwk" }) as { x: string; y: string };
  return {
    privateKey: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64"),
    publicKey: Buffer.concat([Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]).toString("base64"),
  };
}

export const dnskeyRdata = (publicKey: string): Buffer =>
  new ByteWriter()
    .uint16(keyFlags)
    .uint8(protocol)
    .uint8(algorithm)
    .bytes(Buffer.from(publicKey, "base64"))
    .done();

/** The key tag of a DNSKEY record (RFC 4034, appendix B). */
export function keyTagOf(publicKey: string): number {
  let sum = 0;
  for (const [index, byte] of dnskeyRdata(publicKey).entries()) sum += index % 2 === 0 ? byte << 8 : byte;
  return (sum + (sum >> 16)) & 0xffff;
}

/** The digest for the parent's DS record, in upper-case hex. */
export const digestOf = (zoneName: string, publicKey: string): string =>
  createHash("sha256")
    .update(nameBytes(nameKey(zoneName)))
    .update(dnskeyRdata(publicKey))
    .digest("hex")
    .toUpperCase();

export const dsRdata = (zoneName: string, publicKey: string): Buffer =>
  new ByteWriter()
    .uint16(keyTagOf(publicKey))
    .uint8(algorithm)
    .uint8(digestType)
    .bytes(Buffer.from(digestOf(zoneName, publicKey), "hex"))
    .done();
