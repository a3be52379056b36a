import { declare } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";

/** The installation's owner. */
export const declaration = declare({
  settings: {
    accountId: {
      kind: "text",
      form: forms.id,
      flag: "account-id",
      env: "SELVEDGE_ACCOUNT_ID",
      describe: "id of the first account, 32 hex characters (default: generated)",
    },
    apiToken: {
      kind: "text",
      form: forms.secret,
      flag: "api-token",
      env: "SELVEDGE_API_TOKEN",
      describe: "the owner's API token, at least 8 characters (default: generated)",
      secret: true,
    },
    email: {
      kind: "text",
      form: forms.email,
      flag: "email",
      env: "SELVEDGE_EMAIL",
      default: "owner@selvedge.localhost",
      describe: "the owner's email address",
    },
    apiKey: {
      kind: "text",
      form: forms.secret,
      flag: "api-key",
      env: "SELVEDGE_API_KEY",
      describe: "the owner's legacy API key (default: none)",
      secret: true,
    },
  },
});
