import { capability } from "../../capability.ts";
import { reloadByForgetting } from "../../platform/storage/changes/listeners.ts";
import { tokens } from "../../control/tokens/capability.ts";
import { storage } from "../../platform/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { scripts } from "../scripts/capability.ts";
import { joinTails } from "./between-processes.ts";
import { tailUpgrade } from "./listener.ts";
import { TailRelay } from "./relay.ts";
import { tailPermission, Tails } from "./tails.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { declaration } from "./declaration.ts";
import { tailErrors } from "./errors.ts";
import { tailErrorCodes } from "./api-errors.ts";

/** A token that expires ends its tails within this time. */
const checkIntervalMs = 60_000;

/** Live logs of runs. */
export const tails = capability({
  name: "tails",
  processes: "all",
  declares: declaration,
  needs: [storage, processes, scripts, tokens],
  create(needed) {
    const created = new Tails(async ({ creator, accountId }) => {
      const actor = await needed.tokens.actorNow(creator);
      return actor?.can(tailPermission, { accountId }) === true;
    });
    needed.scripts.onGone((scriptId) => created.endScope(scriptId));
    joinTails(created, needed.messageBus, needed.own);
    return { tails: created };
  },
  operations: async () => (await import("./api.ts")).tailOperations,
  errors: [{ title: "Live logs", errors: tailErrors, codes: tailErrorCodes }],
  idParameters: ["tail_id"],
  apiUpgrade: (services) => tailUpgrade(services.tails, services.logger),
  async run({ storage: database, tails: watched, logger }) {
    const relay = database.engine === "postgres" ? new TailRelay(database, watched, logger) : undefined;
    await relay?.start();
    const check = async (): Promise<void> => {
      await watched.endForbidden().catch((error: unknown) => {
        logger.warn({ err: error }, "the permissions of live logs could not be checked; trying again");
      });
    };
    database.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "api_token" || kind === "account" || kind === "user"))
        await check();
    }, reloadByForgetting(check));
    const timer = setInterval(() => unawaited(check()), checkIntervalMs).unref();
    return async () => {
      clearInterval(timer);
      // An open live log would keep the listener from closing.
      await watched.endAll();
      relay?.stop();
    };
  },
});
