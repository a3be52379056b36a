import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { repeat } from "../../platform/util/repeat.ts";
import { accounts } from "../accounts/capability.ts";
import { zones } from "../zones/capability.ts";
import { Audit } from "./audit.ts";
import { declaration } from "./declaration.ts";

const tidyMs = 10 * 60_000;

export const audit = capability({
  name: "audit log",
  declares: declaration,
  needs: [storage, accounts, zones],
  create: (needed) => ({ audit: new Audit(needed, needed.apiChecks.withoutAudit !== true) }),
  operations: async () => (await import("./api.ts")).auditOperations,
  metrics: async (services) => (await import("./metrics.ts")).auditMetrics(services.audit),
  async expire({ audit: log, config }) {
    await log.removeOld(config.auditRetentionDays);
    return { audit: log.removed };
  },
  run: ({ audit: log, config, logger }) =>
    repeat(
      async () => log.removeOld(config.auditRetentionDays),
      { everyMs: tidyMs, firstMs: 60_000 },
      { logger, message: "removing old audit entries failed" },
    ),
  close: (services) => services.audit.close(),
});
