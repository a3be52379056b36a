import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { accounts, installation } from "../accounts/capability.ts";
import { zones } from "../zones/capability.ts";
import { apiTokenOperations } from "./api.ts";
import { Tokens } from "./tokens.ts";

export const tokens = capability({
  name: "tokens",
  needs: [storage, installation, accounts, zones],
  create: (needed) => ({
    tokens: new Tokens(needed.storage, needed.accounts, needed.pepper, needed.zones),
  }),
  operations: apiTokenOperations,
  idParameters: ["token_id"],
});
