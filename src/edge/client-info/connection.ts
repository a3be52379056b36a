import type { IncomingMessage } from "node:http";
import type { CipherNameAndProtocol as TlsCipher, TLSSocket } from "node:tls";
import { cipherName } from "../../platform/access-log/cipher-name.ts";
import { helloOf } from "../tls/client-hello.ts";

export interface ConnectionFields {
  httpProtocol: string;
  /** Empty without TLS. */
  tlsVersion: string;
  tlsCipher: string;
  requestPriority: string;
  clientAcceptEncoding: string;
  /** Decimal digits as a string, as in the public API. */
  tlsClientHelloLength?: string;
  tlsClientRandom?: string;
  tlsClientCiphersSha1?: string;
  tlsClientExtensionsSha1?: string;
  tlsClientExtensionsSha1Le?: string;
  tlsClientAuth?: typeof noClientCertificate;
}

/** The edge does not request client certificates. */
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

/** Properties of the connection and of the request's protocol for `request.cf`. */
export function connectionFields(request: IncomingMessage): ConnectionFields {
  const { socket, headers, httpVersion } = request;
  const tls = (socket as Partial<TLSSocket>).encrypted === true ? (socket as TLSSocket) : undefined;
  // Undefined after the connection has closed, despite the type.
  const cipher = tls?.getCipher() as TlsCipher | null | undefined;
  return {
    httpProtocol: httpVersion === "2.0" ? "HTTP/2" : `HTTP/${httpVersion}`,
    tlsVersion: tls?.getProtocol() ?? "",
    tlsCipher: cipherName(cipher?.name ?? ""),
    requestPriority: textOf(headers["priority"]),
    clientAcceptEncoding: textOf(headers["accept-encoding"]),
    ...(tls === undefined ? {} : { tlsClientAuth: noClientCertificate, ...helloFields(tls) }),
  };
}

function helloFields(socket: TLSSocket): Partial<ConnectionFields> {
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

const textOf = (value: string | string[] | undefined): string =>
  Array.isArray(value) ? value.join(", ") : (value ?? "");
