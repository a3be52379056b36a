import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { helloOf } from "../tls/client-hello.ts";

export interface ConnectionFacts {
  httpProtocol: string;
  /** Empty without TLS. */
  tlsVersion: string;
  tlsCipher: string;
  requestPriority: string;
  clientAcceptEncoding: string;
  /** In decimal digits, as scripts have always had it. */
  tlsClientHelloLength?: string;
  tlsClientRandom?: string;
  tlsClientCiphersSha1?: string;
  tlsClientExtensionsSha1?: string;
  tlsClientExtensionsSha1Le?: string;
  tlsClientAuth?: typeof noClientCertificate;
}

/** Visitors are not asked for certificates. */
const noClientCertificate = {
  certIssuerDNLegacy: "",
  certIssuerSKI: "",
  certSubjectDNRFC2253: "",
  certSubjectDNLegacy: "",
  certFingerprintSHA256: "",
  certNotBefore: "",
  certSKI: "",
  certSerial: "",
  certIssuerDN: "",
  certVerified: "NONE",
  certNotAfter: "",
  certSubjectDN: "",
  certPresented: "0",
  certRevoked: "0",
  certIssuerSerial: "",
  certIssuerDNRFC2253: "",
  certFingerprintSHA1: "",
} as const;

/** What the connection and the request's own words say about themselves. */
export function connectionFacts(request: IncomingMessage): ConnectionFacts {
  const { socket, headers, httpVersion } = request;
  const tls = (socket as Partial<TLSSocket>).encrypted === true ? (socket as TLSSocket) : undefined;
  return {
    httpProtocol: httpVersion === "2.0" ? "HTTP/2" : `HTTP/${httpVersion}`,
    tlsVersion: tls?.getProtocol() ?? "",
    tlsCipher: cipherName(tls?.getCipher().name ?? ""),
    requestPriority: textOf(headers["priority"]),
    clientAcceptEncoding: textOf(headers["accept-encoding"]),
    ...(tls === undefined ? {} : { tlsClientAuth: noClientCertificate, ...helloFacts(tls) }),
  };
}

function helloFacts(socket: TLSSocket): Partial<ConnectionFacts> {
  const hello = helloOf(socket);
  if (hello === undefined) return {};
  return {
    tlsClientHelloLength: String(hello.length),
    tlsClientRandom: hello.random.toString("base64"),
    tlsClientCiphersSha1: hello.ciphersSha1,
    tlsClientExtensionsSha1: hello.extensionsSha1,
    tlsClientExtensionsSha1Le: hello.extensionsSha1Le,
  };
}

/** The suites of TLS 1.3 choose no key exchange, and are named by what they encrypt with: `AEAD-AES128-GCM-SHA256`. */
export function cipherName(name: string): string {
  const match = /^TLS_(AES|CHACHA20)_(.+)$/.exec(name);
  if (match === null) return name;
  const [, algorithm, rest] = match as unknown as [string, string, string];
  return algorithm === "AES"
    ? `AEAD-AES${rest.replaceAll("_", "-")}`
    : `AEAD-CHACHA20-${rest.replaceAll("_", "-")}`;
}

const textOf = (value: string | string[] | undefined): string =>
  Array.isArray(value) ? value.join(", ") : (value ?? "");
