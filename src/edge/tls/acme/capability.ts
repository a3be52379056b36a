import { capability } from "../../../capability.ts";
import { zoneSettings } from "../../../control/zone-settings/capability.ts";
import { zones } from "../../../control/zones/capability.ts";
import { storage } from "../../../platform/capability.ts";
import { certificates } from "../certificates/capability.ts";
import { declaration } from "./declaration.ts";

/** Issues certificates with an ACME authority. Its modules are loaded only if one is configured. */
export const acme = capability({
  name: "ACME",
  processes: "all",
  declares: declaration,
  needs: [storage, zones, zoneSettings, certificates],
  async create({ config, storage: database }) {
    if (config.acmeDirectory === undefined) return { challenges: undefined };
    const { Challenges, challengeHandler } = await import("./challenges.ts");
    return { challenges: { of: new Challenges(database), handlerOf: challengeHandler } };
  },
  edgeHandlers({ challenges, zones: known }) {
    if (challenges === undefined) return [];
    const handler = challenges.handlerOf(challenges.of, (zoneId) => known.find(zoneId)?.accountId);
    return [{ phase: "certificate-challenge", handler }];
  },
  async run({ config, logger, storage: database, ...services }) {
    if (config.acmeDirectory === undefined) return;
    const { startAcme } = await import("./start.ts");
    const running = startAcme(config.acmeDirectory, config, services, database, logger);
    return { giveBack: () => running.close(), stop: () => {} };
  },
});
