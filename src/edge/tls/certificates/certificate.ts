import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import type { KeyPair } from "./x509.ts";
import { certificateErrors } from "./errors.ts";

/** Details from a certificate. */
export interface CertificateDetails {
  hosts: string[];
  issuer: string;
  /** In the API's spelling, such as `SHA256WithRSA`. */
  signature: string;
  notBefore: number;
  expiresOn: number;
}

/** The bits of an RSA key. A handshake signs on the main thread, for 3 ms with 4,096 bits and for 25 s with 32,768. */
const rsaBits = { min: 2048, max: 4096 };
/** Further keys, by Node's names of their curves or types. */
const fastKeys = new Set(["prime256v1", "secp384r1", "secp521r1", "ed25519"]);
/** Maximum number of different names in a certificate. */
const hostsMax = 1000;

const blocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of a bundle, the server's first. */
export function readChain(pem: string): X509Certificate[] {
  const texts = pem.match(blocks) ?? [];
  if (texts.length === 0) throw certificateErrors.unreadable("received none");
  if (texts.length > 10)
    throw certificateErrors.unreadable(`received ${texts.length} certificates; the maximum is 10`);
  return texts.map((text, index) => {
    try {
      return new X509Certificate(text);
    } catch {
      throw certificateErrors.unreadable(`certificate ${index + 1} is invalid`);
    }
  });
}

/** Checks that a bundle and a key belong together and fit the zone; returns the certificate's details. */
export function checkPair(pair: KeyPair, zoneName: string, nowMs: number): CertificateDetails {
  const chain = readChain(pair.certificate);
  const [leaf] = chain as [X509Certificate];
  chain.slice(0, -1).forEach((each, index) => {
    if (!each.checkIssued(chain[index + 1]!)) throw certificateErrors.brokenChain(index + 1);
  });
  const key = readKey(pair.privateKey);
  checkStrength(key);
  if (!leaf.checkPrivateKey(key)) throw certificateErrors.mismatch();
  const details = detailsOf(leaf);
  if (details.hosts.length > hostsMax)
    throw certificateErrors.unreadable(`it has ${details.hosts.length} names; the maximum is ${hostsMax}`);
  if (details.expiresOn <= nowMs) throw certificateErrors.expired(new Date(details.expiresOn).toISOString());
  const isOfZone = (host: string): boolean => host === zoneName || host.endsWith(`.${zoneName}`);
  if (!details.hosts.some(isOfZone)) throw certificateErrors.foreign(zoneName, details.hosts);
  return details;
}

export function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw certificateErrors.unreadableKey(
      /encrypted|passphrase/i.test(pem + String(error)) ? "it is encrypted" : "it cannot be read",
    );
  }
}

/** Throws for a key that is too weak for clients, or too slow for the edge. */
function checkStrength({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): void {
  const { modulusLength: bits = 0, publicExponent = 0n, namedCurve } = asymmetricKeyDetails;
  const type = String(asymmetricKeyType);
  const isFast =
    type === "rsa"
      ? bits >= rsaBits.min && bits <= rsaBits.max && publicExponent < 2n ** 32n
      : fastKeys.has(namedCurve ?? type);
  if (isFast) return;
  const more = namedCurve === undefined ? "" : ` on the curve ${namedCurve}`;
  throw certificateErrors.unreadableKey(
    `received ${type}${type === "rsa" ? ` of ${bits} bits` : more}; RSA of ${rsaBits.min} to ${rsaBits.max} bits with a small exponent, P-256, P-384, P-521 and Ed25519 are supported`,
  );
}

export function detailsOf(certificate: X509Certificate): CertificateDetails {
  const names = (certificate.subjectAltName ?? "")
    .split(", ")
    .filter((name) => name.startsWith("DNS:"))
    .map((name) => name.slice(4).toLowerCase());
  return {
    hosts: [...new Set(names)],
    issuer: /O=(.+)/.exec(certificate.issuer)?.[1] ?? /CN=(.+)/.exec(certificate.issuer)?.[1] ?? "",
    signature: signatureName(certificate),
    notBefore: Date.parse(certificate.validFrom),
    expiresOn: Date.parse(certificate.validTo),
  };
}

/** Converts OpenSSL's `ecdsa-with-SHA256` and `sha256WithRSAEncryption` to the API's spelling. */
function signatureName(certificate: X509Certificate): string {
  const name = certificate.signatureAlgorithm ?? "";
  const hash = /sha-?(\d+)/i.exec(name)?.[1];
  if (hash === undefined) return name.toUpperCase();
  return /ecdsa/i.test(name) ? `ECDSAWithSHA${hash}` : `SHA${hash}WithRSA`;
}

/** Whether a certificate name matches a host. A wildcard matches exactly one label. */
export function covers(name: string, host: string): boolean {
  if (name === host) return true;
  return name.startsWith("*.") && host.indexOf(".") > 0 && host.slice(host.indexOf(".")) === name.slice(1);
}
