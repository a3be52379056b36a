import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { Accounts } from "./accounts.ts";
import { ensurePepper } from "./pepper.ts";
import { declaration } from "./declaration.ts";

/** The secret of the installation, the key of everything that it hashes. */
export const installation = capability({
  name: "installation",
  processes: "all",
  needs: [storage],
  create: async (needed) => ({ pepper: await ensurePepper(needed.storage) }),
});

export const accounts = capability({
  name: "accounts",
  processes: "all",
  declares: declaration,
  needs: [storage],
  create: (needed) => ({ accounts: new Accounts(needed.storage) }),
  load: (services) => services.accounts.load(),
});
