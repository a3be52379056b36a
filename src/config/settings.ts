import { planNames } from "../zones/plans.ts";

type Kind =
  | { kind: "text" }
  | { kind: "address" }
  | { kind: "count"; min: number; max: number }
  | { kind: "flag" }
  | { kind: "choice"; choices: readonly string[] }
  | { kind: "list" };

export type Setting = Kind & {
  flag: string;
  env: string;
  /** Undefined where there is no default; the text says what then holds. */
  default?: string | number | boolean | readonly string[];
  describe: string;
  secret?: true;
};

const choice = <const C extends readonly string[]>(choices: C) => ({ kind: "choice", choices }) as const;
const mebibyte = 1024 * 1024;

/** Every setting, once: flags, environment, file keys, `config print` and docs/reference/configuration.md come from here. */
export const settings = {
  dataDir: {
    kind: "text",
    flag: "data-dir",
    env: "SELVEDGE_DATA_DIR",
    default: "./data",
    describe: "folder for the database and blobs",
  },
  ephemeral: {
    kind: "flag",
    flag: "ephemeral",
    env: "SELVEDGE_EPHEMERAL",
    default: false,
    describe: "keep everything in memory and forget it at the end",
  },
  readyFile: {
    kind: "text",
    flag: "ready-file",
    env: "SELVEDGE_READY_FILE",
    describe: "file written when every listener accepts, with their addresses",
  },
  apiListen: {
    kind: "address",
    flag: "api-listen",
    env: "SELVEDGE_API_LISTEN",
    default: "127.0.0.1:8787",
    describe: "management API",
  },
  edgeListen: {
    kind: "address",
    flag: "edge-listen",
    env: "SELVEDGE_EDGE_LISTEN",
    default: "127.0.0.1:8080",
    describe: "edge, HTTP",
  },
  edgeTlsListen: {
    kind: "address",
    flag: "edge-tls-listen",
    env: "SELVEDGE_EDGE_TLS_LISTEN",
    describe: "edge, HTTP/1.1 and HTTP/2 over TLS; none",
  },
  dnsListen: {
    kind: "address",
    flag: "dns-listen",
    env: "SELVEDGE_DNS_LISTEN",
    default: "127.0.0.1:8053",
    describe: "name server",
  },
  edgeAddresses: {
    kind: "list",
    flag: "edge-addresses",
    env: "SELVEDGE_EDGE_ADDRESSES",
    default: [],
    describe: "IPv4 and IPv6 addresses that proxied names are answered with; where the edge listens",
  },
  dnsResponseRateLimit: {
    kind: "count",
    min: 0,
    max: 1_000_000,
    flag: "dns-response-rate-limit",
    env: "SELVEDGE_DNS_RESPONSE_RATE_LIMIT",
    default: 200,
    describe: "like answers in a second to one network, /24 or /56, without a DNS cookie; 0 for no limit",
  },
  dnsCookieSecret: {
    kind: "text",
    flag: "dns-cookie-secret",
    env: "SELVEDGE_DNS_COOKIE_SECRET",
    describe: "32 hex characters that all servers of one address share (RFC 9018); the installation's own",
    secret: true,
  },
  databaseUrl: {
    kind: "text",
    flag: "database-url",
    env: "SELVEDGE_DATABASE_URL",
    describe: "postgres://…; without it a SQLite file in the data folder",
    secret: true,
  },
  accountId: {
    kind: "text",
    flag: "account-id",
    env: "SELVEDGE_ACCOUNT_ID",
    describe: "id of the first account, 32 hex characters; generated",
  },
  apiToken: {
    kind: "text",
    flag: "api-token",
    env: "SELVEDGE_API_TOKEN",
    describe: "the owner's API token, at least 8 characters; generated",
    secret: true,
  },
  email: {
    kind: "text",
    flag: "email",
    env: "SELVEDGE_EMAIL",
    default: "owner@selvedge.localhost",
    describe: "the owner's e-mail address",
  },
  apiKey: {
    kind: "text",
    flag: "api-key",
    env: "SELVEDGE_API_KEY",
    describe: "the owner's legacy API key; none",
    secret: true,
  },
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
  assetCacheMegabytes: {
    kind: "count",
    min: 32,
    max: 1_000_000,
    flag: "asset-cache-megabytes",
    env: "SELVEDGE_ASSET_CACHE_MEGABYTES",
    default: 64,
    describe: "memory for static assets that are asked for often, plain and compressed",
  },
  deliveryUrl: {
    kind: "text",
    flag: "delivery-url",
    env: "SELVEDGE_DELIVERY_URL",
    describe: "address of image delivery as visitors know it; the edge's own, under /cdn-cgi/imagedelivery",
  },
  imageSlots: {
    kind: "count",
    min: 1,
    max: 256,
    flag: "image-slots",
    env: "SELVEDGE_IMAGE_SLOTS",
    describe: "images that are transformed at a time; as many as cores",
  },
  imageMemoryMegabytes: {
    kind: "count",
    min: 1,
    max: 1_000_000,
    flag: "image-memory-megabytes",
    env: "SELVEDGE_IMAGE_MEMORY_MEGABYTES",
    default: 128,
    describe: "memory for finished images that are asked for often",
  },
  imageDiskMegabytes: {
    kind: "count",
    min: 1,
    max: 100_000_000,
    flag: "image-disk-megabytes",
    env: "SELVEDGE_IMAGE_DISK_MEGABYTES",
    default: 2048,
    describe: "disk for finished images, in the data folder",
  },
  imageFaceDetector: {
    kind: "text",
    flag: "image-face-detector",
    env: "SELVEDGE_IMAGE_FACE_DETECTOR",
    describe: "module with a function detect(rgb, width, height) that finds faces, for gravity=face; none",
  },
  workersDomain: {
    kind: "text",
    flag: "workers-domain",
    env: "SELVEDGE_WORKERS_DOMAIN",
    default: "workers.localhost",
    describe: "domain under which each script has a host of its own: SCRIPT.ACCOUNT.DOMAIN",
  },
  scriptBytesMax: {
    kind: "count",
    min: 1024,
    max: 1024 * mebibyte,
    flag: "script-bytes-max",
    env: "SELVEDGE_SCRIPT_BYTES_MAX",
    default: 64 * mebibyte,
    describe: "largest upload of a script, all modules together",
  },
  cells: {
    kind: "count",
    min: 1,
    max: 256,
    flag: "cells",
    env: "SELVEDGE_CELLS",
    describe: "processes that scripts share; as many as cores",
  },
  snippetCpuMs: {
    kind: "count",
    min: 1,
    max: 30_000,
    flag: "snippet-cpu-ms",
    env: "SELVEDGE_SNIPPET_CPU_MS",
    default: 50,
    describe: "CPU time of one run of a snippet (the public service allows 5)",
  },
  snippetMemoryMegabytes: {
    kind: "count",
    min: 8,
    max: 1024,
    flag: "snippet-memory-megabytes",
    env: "SELVEDGE_SNIPPET_MEMORY_MEGABYTES",
    default: 64,
    describe: "memory that one run of a snippet may take (the public service allows 2)",
  },
  scriptCpuMs: {
    kind: "count",
    min: 1,
    max: 300_000,
    flag: "script-cpu-ms",
    env: "SELVEDGE_SCRIPT_CPU_MS",
    default: 10_000,
    describe:
      "CPU time of one run of a script, unless it or its dispatcher says less (the public service allows 30000)",
  },
  scriptMemoryMegabytes: {
    kind: "count",
    min: 16,
    max: 1024,
    flag: "script-memory-megabytes",
    env: "SELVEDGE_SCRIPT_MEMORY_MEGABYTES",
    default: 128,
    describe: "memory that one run of a script may take (the public service allows 128)",
  },
  scriptSubrequestsMax: {
    kind: "count",
    min: 1,
    max: 100_000,
    flag: "script-subrequests-max",
    env: "SELVEDGE_SCRIPT_SUBREQUESTS_MAX",
    default: 1000,
    describe:
      "requests that one run of a script may make, bindings included (the public service allows 1000)",
  },
  scriptCacheMegabytes: {
    kind: "count",
    min: 1,
    max: 65_536,
    flag: "script-cache-megabytes",
    env: "SELVEDGE_SCRIPT_CACHE_MEGABYTES",
    default: 64,
    describe: "memory for the code of scripts that were used lately",
  },
  logLevel: {
    ...choice(["debug", "info", "warn", "error"]),
    flag: "log-level",
    env: "SELVEDGE_LOG_LEVEL",
    default: "info",
    describe: "least level that is logged",
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settings;
type Settings = typeof settings;
type Value<S> = S extends { kind: "count" }
  ? number
  : S extends { kind: "flag" }
    ? boolean
    : S extends { kind: "list" }
      ? readonly string[]
      : S extends { choices: readonly (infer C)[] }
        ? C
        : string;

/** The effective settings; those without a default may be undefined. */
export type Config = {
  [N in SettingName]: Settings[N] extends { default: unknown }
    ? Value<Settings[N]>
    : Value<Settings[N]> | undefined;
};
