import { declare, table } from "../../../declaration.ts";
import { forms } from "../../../platform/config/forms.ts";
import { choice } from "../../../platform/config/setting.ts";
import type { AcmeAccountsTable, AcmeChallengesTable } from "./tables.ts";

/** Certificates that an ACME authority issues. */
export const declaration = declare({
  settings: {
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
        "how ACME validates names of zones: in this installation's DNS, with wildcards (dns-01), or over HTTP at each proxied name (http-01); partial zones always use http-01",
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
      describe:
        "delay before the first retry of a failed issuance; it doubles with each failure, up to a day",
    },
  },
  checkSettings: ({ acmeEabKid, acmeEabKey }) =>
    (acmeEabKid === undefined) === (acmeEabKey === undefined)
      ? undefined
      : `Expected acme-eab-kid and acme-eab-key together but received only ${acmeEabKid === undefined ? "acme-eab-key" : "acme-eab-kid"}`,
  tables: {
    acme_accounts: table<AcmeAccountsTable>(),
    acme_challenges: table<AcmeChallengesTable>(),
  },
  changes: ["acme_challenge"],
});
