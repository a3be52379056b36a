import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import {
  bits,
  boolean,
  explicit,
  implicit,
  integer,
  octets,
  oid,
  sequence,
  set,
  time,
  utf8,
  type Der,
} from "./der.ts";

/** A certificate and its key, in PEM. */
export interface KeyPair {
  certificate: string;
  privateKey: string;
}

export interface CertificateSigner {
  name: string;
  key: KeyObject;
  publicKey: KeyObject;
}

const dayMs = 86_400_000;
const ecdsaWithSha256 = sequence(oid("1.2.840.10045.4.3.2"));
const distinguishedName = (name: string): Der => sequence(set(sequence(oid("2.5.4.3"), utf8(name))));

export const newKeys = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

/** A self-signed CA certificate. */
export function authorityCertificate(signer: CertificateSigner, days: number): string {
  const keyCertSignAndCrlSign = bits(Buffer.from([0b0000_0110]), 1);
  return certificate(signer, signer.name, signer.publicKey, days, [
    extension("2.5.29.19", true, sequence(boolean(true), integer(Buffer.from([0])))),
    extension("2.5.29.15", true, keyCertSignAndCrlSign),
    extension("2.5.29.14", false, octets(keyId(signer.publicKey))),
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
    isIP(host) === 0 ? implicit(2, Buffer.from(host)) : implicit(7, addressBytes(host)),
  );
  const digitalSignature = bits(Buffer.from([0b1000_0000]), 7);
  return certificate(signer, hosts[0]!, publicKey, days, [
    extension("2.5.29.19", true, sequence()),
    extension("2.5.29.15", true, digitalSignature),
    extension("2.5.29.37", false, sequence(oid("1.3.6.1.5.5.7.3.1"))),
    extension("2.5.29.17", false, sequence(...names)),
    extension("2.5.29.14", false, octets(keyId(publicKey))),
    extension("2.5.29.35", false, sequence(implicit(0, keyId(signer.publicKey)))),
  ]);
}

function certificate(
  signer: CertificateSigner,
  subject: string,
  publicKey: KeyObject,
  days: number,
  extensions: readonly Der[],
): string {
  const now = Date.now();
  const toBeSigned = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(randomBytes(16)),
    ecdsaWithSha256,
    distinguishedName(signer.name),
    sequence(time(new Date(now - dayMs)), time(new Date(now + days * dayMs))), // tolerates clock differences
    distinguishedName(subject.slice(0, 64)),
    spki(publicKey),
    explicit(3, sequence(...extensions)),
  );
  const signature = sign("sha256", toBeSigned, signer.key);
  const der = sequence(toBeSigned, ecdsaWithSha256, bits(signature));
  const lines = der.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

const extension = (id: string, isCritical: boolean, value: Der): Der =>
  sequence(oid(id), ...(isCritical ? [boolean(true)] : []), octets(value));

const spki = (key: KeyObject): Der => key.export({ type: "spki", format: "der" });

/** SHA-1 of the public key bits (RFC 5280, 4.2.1.2): the last 65 bytes of a P-256 key. */
const keyId = (key: KeyObject): Buffer => createHash("sha1").update(spki(key).subarray(-65)).digest();

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const words = (text = ""): string[] => (text === "" ? [] : text.split(":"));
  const [left, right] = [words(head), words(tail)];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return Buffer.from([...left, ...zeros, ...right].map((word) => word.padStart(4, "0")).join(""), "hex");
}
