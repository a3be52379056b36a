import { declare } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";

/** The edge over TLS. */
export const declaration = declare({
  settings: {
    tlsCertificates: {
      kind: "list",
      form: forms.pathPair,
      flag: "tls-certificates",
      env: "SELVEDGE_TLS_CERTIFICATES",
      default: [],
      describe: "certificate files, each CERTIFICATE.pem:KEY.pem; certificates of zones take precedence",
    },
  },
  changes: ["tls_ticket_keys"],
});
