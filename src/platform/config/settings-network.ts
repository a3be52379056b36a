import { planNames } from "./plan-names.ts";
import { forms } from "./forms.ts";
import { choice, type Setting } from "./setting.ts";
import { mebibyte } from "../bytes.ts";

/** Settings of the management API, of zones, and of the edge and its certificates. */
export const networkSettings = {
  privateNetworks: {
    ...choice(["deny", "origins", "all"]),
    flag: "private-networks",
    env: "SELVEDGE_PRIVATE_NETWORKS",
    describe:
      "what may connect to loopback and private addresses: nothing, origins, or scripts too (default: origins while every listener is on loopback, else deny)",
  },
  apiRateLimit: {
    kind: "count",
    min: 0,
    max: 1_000_000_000,
    flag: "api-rate-limit",
    env: "SELVEDGE_API_RATE_LIMIT",
    default: 1200,
    describe:
      "management API calls per user, or per account token, in one window, over all nodes; 0 for no limit",
  },
  apiRateWindowSeconds: {
    kind: "count",
    min: 1,
    max: 86_400,
    flag: "api-rate-window-seconds",
    env: "SELVEDGE_API_RATE_WINDOW_SECONDS",
    default: 300,
    describe: "length of the rate limit's window",
  },
  apiBodyBytesMax: {
    kind: "count",
    min: 1024,
    max: 1024 * mebibyte,
    flag: "api-body-bytes-max",
    env: "SELVEDGE_API_BODY_BYTES_MAX",
    default: mebibyte,
    describe: "largest JSON body of a management API call",
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
    describe: "whether accounts have billing; without it, smart routing cannot be changed",
  },
  nameServers: {
    kind: "list",
    form: forms.hostName,
    flag: "name-servers",
    env: "SELVEDGE_NAME_SERVERS",
    default: ["ns1.selvedge.localhost", "ns2.selvedge.localhost"],
    describe: "names of this installation's name servers, assigned to zones in pairs",
  },
  activation: {
    ...choice(["static", "dns"]),
    flag: "activation",
    env: "SELVEDGE_ACTIVATION",
    describe:
      "how pending zones become active: at once (static), or once the public DNS names our servers (dns) (default: static while every listener is on loopback, else dns)",
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
    form: forms.resolver,
    flag: "resolvers",
    env: "SELVEDGE_RESOLVERS",
    default: [],
    describe: "DNS resolvers, each ADDRESS or ADDRESS:PORT (default: the system's)",
  },
  ruleBodyKilobytes: {
    kind: "count",
    min: 1,
    max: 16_384,
    flag: "rule-body-kilobytes",
    env: "SELVEDGE_RULE_BODY_KILOBYTES",
    default: 1024,
    describe: "how much of a request's body rules can see; the zone's plan may allow less",
  },
  errorDetails: {
    ...choice(["local", "none"]),
    flag: "error-details",
    env: "SELVEDGE_ERROR_DETAILS",
    default: "local",
    describe:
      "which visitors see a script's error and stack trace on the error page: those on this machine, unless trusted proxies are set (local), or none",
  },
  trustedProxies: {
    kind: "list",
    form: forms.network,
    flag: "trusted-proxies",
    env: "SELVEDGE_TRUSTED_PROXIES",
    default: [],
    describe:
      "addresses and networks of proxies in front of the edge whose x-forwarded-for and selvedge-cf headers are trusted",
  },
  geoCity: {
    kind: "text",
    flag: "geo-city",
    env: "SELVEDGE_GEO_CITY",
    describe: "MMDB file with the locations of IP addresses (default: none)",
  },
  geoAsn: {
    kind: "text",
    flag: "geo-asn",
    env: "SELVEDGE_GEO_ASN",
    describe: "MMDB file with the autonomous systems of IP addresses (default: none)",
  },
  colo: {
    kind: "text",
    form: forms.letters3,
    flag: "colo",
    env: "SELVEDGE_COLO",
    default: "DEV",
    describe: "this node's location code, three letters",
  },
  tlsCertificates: {
    kind: "list",
    form: forms.pathPair,
    flag: "tls-certificates",
    env: "SELVEDGE_TLS_CERTIFICATES",
    default: [],
    describe: "certificate files, each CERTIFICATE.pem:KEY.pem; certificates of zones take precedence",
  },
  defaultSsl: {
    ...choice(["off", "flexible", "full", "strict"]),
    flag: "default-ssl",
    env: "SELVEDGE_DEFAULT_SSL",
    describe:
      "value of the setting ssl for zones that have not set it (default: flexible while every listener is on loopback, else full)",
  },
  acmeDirectory: {
    kind: "text",
    form: forms.httpsUrl,
    flag: "acme-directory",
    env: "SELVEDGE_ACME_DIRECTORY",
    describe:
      "directory URL of an ACME authority that issues certificates for zones; setting it accepts the authority's terms (default: none)",
  },
  acmeEmail: {
    kind: "text",
    form: forms.email,
    flag: "acme-email",
    env: "SELVEDGE_ACME_EMAIL",
    describe: "contact email address for the ACME authority (default: none)",
  },
  acmeChallenge: {
    ...choice(["dns-01", "http-01"]),
    flag: "acme-challenge",
    env: "SELVEDGE_ACME_CHALLENGE",
    default: "dns-01",
    describe:
      "how ACME validates names of zones: in our DNS, with wildcards (dns-01), or over HTTP at each proxied name (http-01); partial zones always use http-01",
  },
  acmeCa: {
    kind: "text",
    flag: "acme-ca",
    env: "SELVEDGE_ACME_CA",
    describe:
      "PEM file with the authority of the ACME directory's TLS certificate (default: the authorities that Node trusts)",
  },
  acmeEabKid: {
    kind: "text",
    flag: "acme-eab-kid",
    env: "SELVEDGE_ACME_EAB_KID",
    describe: "id of the external account, if the ACME authority requires one (default: none)",
  },
  acmeEabKey: {
    kind: "text",
    form: forms.base64url,
    flag: "acme-eab-key",
    env: "SELVEDGE_ACME_EAB_KEY",
    describe: "HMAC key of the external account, in base64url (default: none)",
    secret: true,
  },
  acmeRetrySeconds: {
    kind: "count",
    min: 1,
    max: 86_400,
    flag: "acme-retry-seconds",
    env: "SELVEDGE_ACME_RETRY_SECONDS",
    default: 120,
    describe: "delay before the first retry of a failed issuance; it doubles with each failure, up to a day",
  },
  originCa: {
    kind: "list",
    flag: "origin-ca",
    env: "SELVEDGE_ORIGIN_CA",
    default: [],
    describe:
      "PEM files with authorities to trust for certificates of origins and relays, in addition to those that Node trusts",
  },
  relays: {
    kind: "list",
    form: forms.relay,
    flag: "relays",
    env: "SELVEDGE_RELAYS",
    default: [],
    describe: "edges of other nodes that smart routing may use as relays, each NAME=http(s)://HOST:PORT",
  },
  relaySecret: {
    kind: "text",
    form: forms.secret,
    flag: "relay-secret",
    env: "SELVEDGE_RELAY_SECRET",
    describe: "shared secret of nodes that relay for each other; without it, this node does not relay",
    secret: true,
  },
  originSourceAddress: {
    kind: "text",
    form: forms.address,
    flag: "origin-source-address",
    env: "SELVEDGE_ORIGIN_SOURCE_ADDRESS",
    describe: "local source address of connections to origins (default: chosen by the system)",
  },
} as const satisfies Record<string, Setting>;
