import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { ApiError } from "../../../control/api/errors.ts";
import type { KeyPair } from "./x509.ts";

/** Details from a certificate. */
export interface CertificateDetails {
  hosts: string[];
  issuer: string;
  /** In the API's spelling, such as `SHA256WithRSA`. */
  signature: string;
  notBefore: number;
  expiresOn: number;
}

export const certificateErrors = {
  notFound: (id: string) => new ApiError(404, 1412, `No custom certificate of the zone has the id ${id}`),
  unreadable: (why: string) =>
    new ApiError(400, 1400, `Expected certificates in PEM, the server's first, for certificate but ${why}`, {
      pointer: "/body/certificate",
    }),
  unreadableKey: (why: string) =>
    new ApiError(400, 1401, `Expected an unencrypted private key in PEM for private_key but ${why}`, {
      pointer: "/body/private_key",
    }),
  mismatch: () =>
    new ApiError(400, 1402, "The private key does not belong to the certificate", {
      pointer: "/body/private_key",
    }),
  expired: (on: string) =>
    new ApiError(400, 1403, `The certificate expired on ${on}`, { pointer: "/body/certificate" }),
  foreign: (zone: string, hosts: readonly string[]) =>
    new ApiError(
      400,
      1404,
      `Expected a certificate for ${zone} or names below it but received one for ${hosts.join(", ") || "no host name"}`,
      { pointer: "/body/certificate" },
    ),
  tooMany: (most: number) => new ApiError(400, 1406, `A zone has at most ${most} custom certificates`),
  unsupported: (name: string) =>
    new ApiError(
      400,
      1407,
      `${name} is not supported: keys are stored with the installation and uploaded with the certificate`,
      { pointer: `/body/${name}` },
    ),
  noStaging: () =>
    new ApiError(
      400,
      1409,
      'Expected "production" for deploy but received "staging": there is no staging network',
      { pointer: "/body/deploy" },
    ),
  brokenChain: (position: number) =>
    new ApiError(400, 1405, `Certificate ${position} in the bundle was not issued by the one after it`, {
      pointer: "/body/certificate",
    }),
};

const blocks = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

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
  if (!leaf.checkPrivateKey(readKey(pair.privateKey))) throw certificateErrors.mismatch();
  const details = detailsOf(leaf);
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

export function detailsOf(certificate: X509Certificate): CertificateDetails {
  const hosts = (certificate.subjectAltName ?? "")
    .split(", ")
    .filter((name) => name.startsWith("DNS:"))
    .map((name) => name.slice(4).toLowerCase());
  return {
    hosts,
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
