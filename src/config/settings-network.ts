import { planNames } from "../zones/plans.ts";
import { choice, mebibyte, type Setting } from "./setting.ts";

/** The management API, zones, the edge and its certificates. */
export const networkSettings = {
  privateNetworks: {
    ...choice(["deny", "origins", "all"]),
    flag: "private-networks",
    env: "SELVEDGE_PRIVATE_NETWORKS",
    describe:
      "who may reach loopback and private addresses; origins while every listener is on loopback, else deny",
  },
  apiRateLimit: {
    kind: "count",
    min: 0,
    max: 1_000_000_000,
    flag: "api-rate-limit",
    env: "SELVEDGE_API_RATE_LIMIT",
    default: 1200,
    describe: "management calls per user, or per token of an account, in a window; 0 for no limit",
  },
  apiRateWindowSeconds: {
    kind: "count",
    min: 1,
    max: 86_400,
    flag: "api-rate-window-seconds",
    env: "SELVEDGE_API_RATE_WINDOW_SECONDS",
    default: 300,
    describe: "the time that the rate limit is for",
  },
  apiBodyBytesMax: {
    kind: "count",
    min: 1024,
    max: 1024 * mebibyte,
    flag: "api-body-bytes-max",
    env: "SELVEDGE_API_BODY_BYTES_MAX",
    default: mebibyte,
    describe: "largest JSON body of a management call",
  },
  defaultPlan: {
    ...choice(planNames),
    flag: "default-plan",
    env: "SELVEDGE_DEFAULT_PLAN",
    default: "enterprise",
    describe: "plan of new zones",
  },
  billing: {
    kind: "flag",
    flag: "billing",
    env: "SELVEDGE_BILLING",
    default: true,
    describe: "whether billing is configured for accounts; without it smart routing is not editable",
  },
  nameServers: {
    kind: "list",
    flag: "name-servers",
    env: "SELVEDGE_NAME_SERVERS",
    default: ["ns1.selvedge.localhost", "ns2.selvedge.localhost"],
    describe: "this installation's name servers, assigned to zones in pairs",
  },
  activation: {
    ...choice(["static", "dns"]),
    flag: "activation",
    env: "SELVEDGE_ACTIVATION",
    describe:
      "how pending zones become active: at once, or when the DNS names our servers; static while every listener is on loopback, else dns",
  },
  activationIntervalSeconds: {
    kind: "count",
    min: 0,
    max: 86_400,
    flag: "activation-interval-seconds",
    env: "SELVEDGE_ACTIVATION_INTERVAL_SECONDS",
    default: 300,
    describe: "time between two DNS checks of a pending zone",
  },
  resolvers: {
    kind: "list",
    flag: "resolvers",
    env: "SELVEDGE_RESOLVERS",
    default: [],
    describe: "DNS resolvers, address or address:port; the system's",
  },
  trustedProxies: {
    kind: "list",
    flag: "trusted-proxies",
    env: "SELVEDGE_TRUSTED_PROXIES",
    default: [],
    describe:
      "addresses and networks of proxies in front of the edge whose x-forwarded-for and selvedge-cf are believed; none",
  },
  geoCity: {
    kind: "text",
    flag: "geo-city",
    env: "SELVEDGE_GEO_CITY",
    describe: "MMDB file of the places of addresses; none",
  },
  geoAsn: {
    kind: "text",
    flag: "geo-asn",
    env: "SELVEDGE_GEO_ASN",
    describe: "MMDB file of the networks of addresses; none",
  },
  colo: {
    kind: "text",
    flag: "colo",
    env: "SELVEDGE_COLO",
    default: "DEV",
    describe: "this node's location code, three letters",
  },
  tlsCertificates: {
    kind: "list",
    flag: "tls-certificates",
    env: "SELVEDGE_TLS_CERTIFICATES",
    default: [],
    describe: "certificates in files, CERTIFICATE.pem:KEY.pem; zones' own go before them",
  },
  defaultSsl: {
    ...choice(["off", "flexible", "full", "strict"]),
    flag: "default-ssl",
    env: "SELVEDGE_DEFAULT_SSL",
    describe:
      "the setting ssl of zones that have not set it; flexible while every listener is on loopback, else full",
  },
  acmeDirectory: {
    kind: "text",
    flag: "acme-directory",
    env: "SELVEDGE_ACME_DIRECTORY",
    describe:
      "URL of the directory of an ACME authority that issues certificates for zones, whose terms are agreed to by this; none",
  },
  acmeEmail: {
    kind: "text",
    flag: "acme-email",
    env: "SELVEDGE_ACME_EMAIL",
    describe: "address that the ACME authority may write to; none",
  },
  acmeChallenge: {
    ...choice(["dns-01", "http-01"]),
    flag: "acme-challenge",
    env: "SELVEDGE_ACME_CHALLENGE",
    default: "dns-01",
    describe:
      "how the names of zones are proved: in our own DNS, with a wildcard, or over HTTP at each proxied name; partial zones always the latter",
  },
  acmeCa: {
    kind: "text",
    flag: "acme-ca",
    env: "SELVEDGE_ACME_CA",
    describe:
      "file with the authority, in PEM, of the ACME directory's own certificate; those that Node trusts",
  },
  acmeEabKid: {
    kind: "text",
    flag: "acme-eab-kid",
    env: "SELVEDGE_ACME_EAB_KID",
    describe: "id of the external account that the ACME authority asks for; none",
  },
  acmeEabKey: {
    kind: "text",
    flag: "acme-eab-key",
    env: "SELVEDGE_ACME_EAB_KEY",
    describe: "HMAC key of the external account, in base64url; none",
    secret: true,
  },
  acmeRetrySeconds: {
    kind: "count",
    min: 1,
    max: 86_400,
    flag: "acme-retry-seconds",
    env: "SELVEDGE_ACME_RETRY_SECONDS",
    default: 120,
    describe: "wait after a certificate was not issued; doubled with each failure, up to a day",
  },
  originCa: {
    kind: "list",
    flag: "origin-ca",
    env: "SELVEDGE_ORIGIN_CA",
    default: [],
    describe:
      "files with authorities, in PEM, that origins and relays may have certificates from, beside those that Node trusts",
  },
  relays: {
    kind: "list",
    flag: "relays",
    env: "SELVEDGE_RELAYS",
    default: [],
    describe: "other nodes' edges that smart routing may send through, NAME=http(s)://HOST:PORT",
  },
  relaySecret: {
    kind: "text",
    flag: "relay-secret",
    env: "SELVEDGE_RELAY_SECRET",
    describe:
      "the secret that nodes which relay for each other share; without it this node relays for nobody",
    secret: true,
  },
  originSourceAddress: {
    kind: "text",
    flag: "origin-source-address",
    env: "SELVEDGE_ORIGIN_SOURCE_ADDRESS",
    describe: "address of this machine that connections to origins come from; the system's choice",
  },
} as const satisfies Record<string, Setting>;
