import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { scripts } from "../scripts/capability.ts";
import { tailOperations } from "./api.ts";
import { tailUpgrade } from "./listener.ts";
import { TailRelay } from "./relay.ts";
import { Tails } from "./tails.ts";

/** Live logs of runs. */
export const tails = capability({
  name: "tails",
  needs: [storage, scripts],
  create(needed) {
    const created = new Tails();
    needed.scripts.onGone((scriptId) => created.endScope(scriptId));
    return { tails: created };
  },
  operations: tailOperations,
  idParameters: ["tail_id"],
  apiUpgrade: (services) => tailUpgrade(services.tails, services.logger),
  async run({ storage: database, tails: watched, logger }) {
    const relay = database.engine === "postgres" ? new TailRelay(database, watched, logger) : undefined;
    await relay?.start();
    return async () => {
      // An open live log would keep the listener from closing.
      await watched.endAll();
      relay?.stop();
    };
  },
});
