import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { DashboardFiles } from "../../platform/dashboard/files.ts";
import { dashboardPages } from "../../platform/dashboard/pages.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { audit } from "../audit/capability.ts";
import { accounts } from "../accounts/capability.ts";
import { tokens } from "../tokens/capability.ts";
import { zones } from "../zones/capability.ts";
import { declaration } from "./declaration.ts";
import { sessionErrors } from "./api-errors.ts";
import { SessionCalls } from "./api-session.ts";
import { Sessions } from "./sessions.ts";
import { StartCodes } from "./start-codes.ts";

/** The console: its pages, and the sessions of the people who use it. */
export const dashboard = capability({
  name: "dashboard",
  declares: declaration,
  needs: [storage, accounts, zones, tokens, audit],
  create({ config, logger, ...needed }) {
    const sessions = new Sessions(needed.storage, needed.tokens);
    const startCodes = new StartCodes((secret) => needed.tokens.hash(secret));
    const hosts = new Set(config.dashboardHosts.map((host) => host.toLowerCase()));
    const calls = new SessionCalls({ sessions, startCodes, hosts, logger, ...needed });
    const dashboardOrigins: string[] = [];
    const isOn = config.dashboard === "on";
    return {
      sessions,
      startCodes,
      /** Undefined if the console is off: no cookie is accepted then. */
      sessionHosts: isOn ? hosts : undefined,
      dashboardPages: isOn
        ? dashboardPages({
            files: new DashboardFiles(logger),
            answerSession: (request, response) => unawaited(calls.answer(request, response)),
            origins: () => dashboardOrigins,
            logger,
          })
        : undefined,
      /** Other origins from which the console's pages may load data. Capabilities add to it. */
      dashboardOrigins,
    };
  },
  errors: [{ title: "Sign-in at the console", errors: sessionErrors }],
});
