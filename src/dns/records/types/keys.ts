import { base64, mnemonic, oneOf, parseBase64, uint16, uint8, type Field } from "./fields.ts";
import { structured } from "./structured.ts";
import { plain } from "./type.ts";

/** Names of DNSSEC algorithms in zone files (IANA registry). */
export const algorithm = (name: string): Field =>
  mnemonic(uint8(name), {
    RSAMD5: 1,
    DSA: 3,
    RSASHA1: 5,
    "DSA-NSEC3-SHA1": 6,
    "RSASHA1-NSEC3-SHA1": 7,
    RSASHA256: 8,
    RSASHA512: 10,
    "ECC-GOST": 12,
    ECDSAP256SHA256: 13,
    ECDSAP384SHA384: 14,
    ED25519: 15,
    ED448: 16,
  });

/** Certificate types (RFC 4398 §2.1). */
const certificateType = mnemonic(uint16("type"), {
  PKIX: 1,
  SPKI: 2,
  PGP: 3,
  IPKIX: 4,
  ISPKI: 5,
  IPGP: 6,
  ACPKIX: 7,
  IACPKIX: 8,
  URI: 253,
  OID: 254,
});

/**
 * The zone key bit must be set. The bits for "revoked" and "secure entry point" may be (RFC 4034 §2.1.1, RFC
 * 5011 §7).
 */
const keyFlags = oneOf("flags", [256, 257, 384, 385]);

export const DNSKEY = structured("DNSKEY", [
  keyFlags,
  oneOf("protocol", [3]),
  algorithm("algorithm"),
  base64("public_key"),
]);

export const CERT = structured("CERT", [
  certificateType,
  uint16("key_tag"),
  algorithm("algorithm"),
  base64("certificate"),
]);

export const OPENPGPKEY = plain("OPENPGPKEY", "base64 text", parseBase64);
