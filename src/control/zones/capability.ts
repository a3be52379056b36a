import { capability } from "../../capability.ts";
import { activationOf, platformNames } from "../../platform/config/derived.ts";
import { storage } from "../../platform/capability.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { accounts, installation } from "../accounts/capability.ts";
import { hashSecret } from "../access/secret.ts";
import { dnsActivation, dnsProof, staticActivation } from "./activation.ts";
import { verificationKeyOf, Zones } from "./zones.ts";
import { declaration } from "./declaration.ts";
import { zoneErrors } from "./errors.ts";
import { zoneErrorCodes } from "./api/api-errors.ts";

const activationTickMs = 1000;

export const zones = capability({
  name: "zones",
  processes: "all",
  declares: declaration,
  needs: [storage, installation, accounts],
  create: ({ config, pepper, storage: database }) => ({
    zones: new Zones(database, {
      nameServers: config.nameServers,
      defaultPlan: config.defaultPlan,
      activation:
        activationOf(config) === "static"
          ? staticActivation
          : dnsActivation(config.resolvers, config.activationIntervalSeconds),
      activatesAtOnce: config.testApi && activationOf(config) === "static",
      platformNames: platformNames(config),
      ownership: {
        keyOf: (accountId, name) => verificationKeyOf(hashSecret(`zone ${accountId} ${name}`, pepper)),
        isShown: dnsProof(config.resolvers),
      },
    }),
  }),
  async operations() {
    const { zoneOperations } = await import("./api/api.ts");
    const { planOperations } = await import("./api/api-plans.ts");
    return [...zoneOperations, ...planOperations];
  },
  errors: [{ title: "Zones", errors: zoneErrors, codes: zoneErrorCodes }],
  idParameters: ["zone_id", "plan_id"],
  load: (services) => services.zones.load(),
  run({ logger, zones: known }) {
    const timer = setInterval(() => {
      unawaited(
        known
          .checkPending()
          .catch((error: unknown) => logger.warn({ err: error }, "checking pending zones failed")),
      );
    }, activationTickMs);
    timer.unref();
    return () => clearInterval(timer);
  },
});
