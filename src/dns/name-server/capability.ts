import { capability } from "../../capability.ts";
import { tokens } from "../../control/tokens/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { activationOf } from "../../platform/config/derived.ts";
import { ownListeners, reservation, storage } from "../../platform/capability.ts";
import { dnssec } from "../dnssec/capability.ts";
import { records } from "../records/capability.ts";
import { dnsSettings } from "../settings/capability.ts";
import { transfers } from "../transfers/capability.ts";
import { createNameServer } from "./name-server.ts";
import { listDnsChallenges } from "../challenges/store.ts";
import { declaration } from "./declaration.ts";

export const nameServer = capability({
  name: "name server",
  declares: declaration,
  needs: [reservation, ownListeners, storage, tokens, zones, records, dnssec, dnsSettings, transfers],
  async create({ config, logger, ...needed }) {
    const server = await createNameServer(config, needed, logger, {
      cookieSecret: Buffer.from(needed.tokens.hash("dns cookies"), "hex").subarray(0, 16),
      parentsFollow: activationOf(config) === "static",
      listChallenges: async (zoneId) => listDnsChallenges(needed.storage.read, zoneId),
    });
    return { nameServer: server };
  },
  operations: async () => (await import("./questions/api-query.ts")).queryOperations,
  metrics: async (services) =>
    (await import("./metrics.ts")).nameServerMetrics(() => services.nameServer.answerCounts()),
  load: (services) => services.nameServer.load(),
  async listen({ sockets, dnsListener, nameServer: server }) {
    dnsListener.listensAt(await server.listen(sockets.dns));
  },
  run: (services) => services.nameServer.watchParents(),
  close: (services) => services.nameServer.close(),
});
