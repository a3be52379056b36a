import * as asn1 from "asn1js";
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { ipBytes, parseIp } from "../../../rules/values/ip.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** A certificate and its key, in PEM. */
export interface KeyPair {
  certificate: string;
  privateKey: string;
}

/** A certificate authority: its name and its P-256 key. */
export interface CertificateSigner {
  name: string;
  key: KeyObject;
  publicKey: KeyObject;
}

const dayMs = 86_400_000;
/** The object identifiers of RFC 5280 and RFC 5758. */
const oids = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
};

const sequence = (...value: asn1.AsnType[]): asn1.Sequence => new asn1.Sequence({ value });
const oid = (value: string): asn1.ObjectIdentifier => new asn1.ObjectIdentifier({ value });
const octets = (valueHex: Uint8Array): asn1.OctetString => new asn1.OctetString({ valueHex });
/** A bit string whose first `count` bits are those of `byte`. */
const flags = (byte: number, count: number): asn1.BitString =>
  new asn1.BitString({ valueHex: Uint8Array.of(byte), unusedBits: 8 - count });
/** A context-specific member [n]: with members of its own, or with the bytes of a string. */
const tagged = (tagNumber: number, content: asn1.AsnType | Uint8Array): asn1.AsnType => {
  const idBlock = { tagClass: 3, tagNumber };
  return content instanceof Uint8Array
    ? new asn1.Primitive({ idBlock, valueHex: content })
    : new asn1.Constructed({ idBlock, value: [content] });
};
const distinguishedName = (value: string): asn1.Sequence =>
  sequence(new asn1.Set({ value: [sequence(oid(oids.commonName), new asn1.Utf8String({ value }))] }));

export const newKeys = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

/** A self-signed CA certificate. */
export function authorityCertificate(signer: CertificateSigner, days: number): string {
  const isAuthority = new asn1.Boolean({ value: true });
  const keyCertSignAndCrlSign = flags(0b0000_0110, 7);
  return certificate(signer, signer.name, signer.publicKey, days, [
    extension(oids.basicConstraints, true, sequence(isAuthority, new asn1.Integer({ value: 0 }))),
    extension(oids.keyUsage, true, keyCertSignAndCrlSign),
    extension(oids.subjectKeyIdentifier, false, octets(keyId(signer.publicKey))),
  ]);
}

/** A server certificate for host names and addresses. */
export function serverCertificate(
  signer: CertificateSigner,
  publicKey: KeyObject,
  hosts: readonly string[],
  days: number,
): string {
  const names = hosts.map((host) =>
    isIP(host) === 0 ? tagged(2, Buffer.from(host)) : tagged(7, ipBytes(parseIp(host)!)),
  );
  const digitalSignature = flags(0b1000_0000, 1);
  return certificate(signer, hosts[0]!, publicKey, days, [
    extension(oids.basicConstraints, true, sequence()),
    extension(oids.keyUsage, true, digitalSignature),
    extension(oids.extendedKeyUsage, false, sequence(oid(oids.serverAuth))),
    extension(oids.subjectAltName, false, sequence(...names)),
    extension(oids.subjectKeyIdentifier, false, octets(keyId(publicKey))),
    extension(oids.authorityKeyIdentifier, false, sequence(tagged(0, keyId(signer.publicKey)))),
  ]);
}

function certificate(
  signer: CertificateSigner,
  subject: string,
  publicKey: KeyObject,
  days: number,
  extensions: readonly asn1.AsnType[],
): string {
  // Clients check it with the system's time, the edge with the platform's.
  const now = Date.now();
  const last = Math.max(now, clock.now());
  const algorithm = sequence(oid(oids.ecdsaWithSha256));
  const version3 = new asn1.Integer({ value: 2 });
  const toBeSigned = sequence(
    tagged(0, version3),
    asn1.Integer.fromBigInt(BigInt(`0x${randomBytes(16).toString("hex")}`)),
    algorithm,
    distinguishedName(signer.name),
    sequence(time(Math.min(now, clock.now()) - dayMs), time(last + days * dayMs)), // tolerates clock differences
    distinguishedName(subject.slice(0, 64)),
    asn1.fromBER(spki(publicKey)).result,
    tagged(3, sequence(...extensions)),
  );
  const valueHex = sign("sha256", new Uint8Array(toBeSigned.toBER()), signer.key);
  const der = sequence(toBeSigned, algorithm, new asn1.BitString({ valueHex })).toBER();
  const lines = Buffer.from(der)
    .toString("base64")
    .match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

const extension = (id: string, isCritical: boolean, value: asn1.AsnType): asn1.Sequence =>
  sequence(
    oid(id),
    ...(isCritical ? [new asn1.Boolean({ value: true })] : []),
    octets(new Uint8Array(value.toBER())),
  );

/** UTCTime until 2049, GeneralizedTime after it, both without fractions (RFC 5280, 4.1.2.5). */
function time(ms: number): asn1.AsnType {
  const valueDate = new Date(Math.trunc(ms / 1000) * 1000);
  return valueDate.getUTCFullYear() < 2050
    ? new asn1.UTCTime({ valueDate })
    : new asn1.GeneralizedTime({ valueDate });
}

const spki = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });

/** SHA-1 of the public key bits (RFC 5280, 4.2.1.2): the last 65 bytes of a P-256 key. */
const keyId = (key: KeyObject): Buffer => createHash("sha1").update(spki(key).subarray(-65)).digest();
