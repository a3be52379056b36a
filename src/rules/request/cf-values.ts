import { encodeUtf8, type Value } from "../values/types.ts";
import { parseIp } from "../values/ip.ts";

/** The request's `cf` object, as scripts see it. Every property may be missing. */
export type CfObject = Readonly<Record<string, unknown>>;

const text = (value: unknown): string | undefined =>
  typeof value === "string" ? encodeUtf8(value) : typeof value === "number" ? String(value) : undefined;
const int = (value: unknown): number | undefined => {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(Math.trunc(number))
    ? Math.trunc(number)
    : undefined;
};
const bool = (value: unknown): boolean | undefined =>
  typeof value === "boolean"
    ? value
    : value === "1" || value === 1
      ? true
      : value === "0" || value === 0
        ? false
        : undefined;

type Read = (value: unknown) => Value | undefined;
type Source = readonly [path: string, read: Read];

const geo = (field: string, path: string, read: Read = text): [string, Source][] => [
  [`ip.src.${field}`, [path, read]],
];
const geoTwice = (field: string, path: string, read: Read = text): [string, Source][] => [
  ...geo(field, path, read),
  [`ip.geoip.${field}`, [path, read]],
];

const certificateFields: readonly (readonly [field: string, property: string])[] = [
  ["cert_issuer_dn", "certIssuerDN"],
  ["cert_issuer_dn_rfc2253", "certIssuerDNRFC2253"],
  ["cert_issuer_dn_legacy", "certIssuerDNLegacy"],
  ["cert_subject_dn", "certSubjectDN"],
  ["cert_subject_dn_rfc2253", "certSubjectDNRFC2253"],
  ["cert_subject_dn_legacy", "certSubjectDNLegacy"],
  ["cert_serial", "certSerial"],
  ["cert_issuer_serial", "certIssuerSerial"],
  ["cert_fingerprint_sha256", "certFingerprintSHA256"],
  ["cert_fingerprint_sha1", "certFingerprintSHA1"],
  ["cert_not_before", "certNotBefore"],
  ["cert_not_after", "certNotAfter"],
  ["cert_ski", "certSKI"],
  ["cert_issuer_ski", "certIssuerSKI"],
  ["cert_rfc9440", "certRFC9440"],
  ["cert_chain_rfc9440", "certChainRFC9440"],
];

/** For each field, the path of its value in `cf` and the function that reads it. */
export const cfSources: ReadonlyMap<string, Source> = new Map<string, Source>([
  ...geo("lat", "latitude"),
  ...geo("lon", "longitude"),
  ...geo("city", "city"),
  ...geo("postal_code", "postalCode"),
  ...geo("metro_code", "metroCode"),
  ...geo("region", "region"),
  ...geo("region_code", "regionCode"),
  ...geo("timezone.name", "timezone"),
  ...geoTwice("continent", "continent"),
  ...geoTwice("country", "country"),
  ...geoTwice("subdivision_1_iso_code", "regionCode"),
  ...geoTwice("subdivision_2_iso_code", "subdivision2Code"),
  ...geoTwice("asnum", "asn", int),
  ...geoTwice("is_in_european_union", "isEUCountry", bool),
  ["cf.tls_version", ["tlsVersion", text]],
  ["cf.tls_cipher", ["tlsCipher", text]],
  ["cf.tls_ciphers_sha1", ["tlsClientCiphersSha1", text]],
  ["cf.tls_client_extensions_sha1", ["tlsClientExtensionsSha1", text]],
  ["cf.tls_client_extensions_sha1_le", ["tlsClientExtensionsSha1Le", text]],
  ["cf.tls_client_hello_length", ["tlsClientHelloLength", int]],
  ["cf.tls_client_random", ["tlsClientRandom", text]],
  [
    "cf.hostname.metadata",
    ["hostMetadata", (value) => (value === undefined ? undefined : encodeUtf8(JSON.stringify(value)))],
  ],
  ["cf.timings.client_tcp_rtt_msec", ["clientTcpRtt", int]],
  ["cf.timings.client_quic_rtt_msec", ["clientQuicRtt", int]],
  ["cf.edge.l4.delivery_rate", ["edgeL4.deliveryRate", int]],
  ["cf.tls_client_auth.cert_presented", ["tlsClientAuth.certPresented", bool]],
  ["cf.tls_client_auth.cert_verified", ["tlsClientAuth.certVerified", (value) => value === "SUCCESS"]],
  ["cf.tls_client_auth.cert_revoked", ["tlsClientAuth.certRevoked", bool]],
  ...certificateFields.map(([field, property]): [string, Source] => [
    `cf.tls_client_auth.${field}`,
    [`tlsClientAuth.${property}`, text],
  ]),
  ["cf.bot_management.score", ["botManagement.score", int]],
  ["cf.bot_management.verified_bot", ["botManagement.verifiedBot", bool]],
  ["cf.client.bot", ["botManagement.verifiedBot", bool]],
  ["cf.bot_management.static_resource", ["botManagement.staticResource", bool]],
  ["cf.bot_management.corporate_proxy", ["botManagement.corporateProxy", bool]],
  ["cf.bot_management.signed_agent", ["botManagement.signedAgent", bool]],
  ["cf.bot_management.js_detection.passed", ["botManagement.jsDetection.passed", bool]],
  ["cf.bot_management.ja3_hash", ["botManagement.ja3Hash", text]],
  ["cf.bot_management.ja4", ["botManagement.ja4", text]],
  [
    "cf.bot_management.detection_ids",
    ["botManagement.detectionIds", (value) => (Array.isArray(value) ? (value as number[]) : undefined)],
  ],
  ["cf.verified_bot_category", ["verifiedBotCategory", text]],
  [
    "cf.edge.server_ip",
    ["edgeServerIp", (value) => (typeof value === "string" ? parseIp(value) : undefined)],
  ],
  ["cf.edge.server_port", ["edgeServerPort", int]],
]);

/** The value at a path of properties. */
export function readPath(cf: CfObject, path: readonly string[]): unknown {
  let value: unknown = cf;
  for (const property of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[property];
  }
  return value;
}
