import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { accounts, installation } from "../accounts/capability.ts";
import { zones } from "../zones/capability.ts";
import { Tokens } from "./tokens.ts";
import { declaration } from "./declaration.ts";
import { tokenErrors } from "./errors.ts";
import { tokenErrorCodes } from "./api-errors.ts";

export const tokens = capability({
  name: "tokens",
  processes: "all",
  declares: declaration,
  needs: [storage, installation, accounts, zones],
  create: (needed) => ({
    tokens: new Tokens(needed.storage, needed.accounts, needed.pepper, needed.zones),
  }),
  operations: async () => (await import("./api.ts")).apiTokenOperations,
  expire: async (services) => ({ tokens: await services.tokens.countExpired() }),
  errors: [{ title: "Tokens", errors: tokenErrors, codes: tokenErrorCodes }],
  idParameters: ["token_id"],
});
