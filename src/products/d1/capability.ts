import { capability } from "../../capability.ts";
import { blobs, storage } from "../../platform/capability.ts";
import { nodeLink } from "../../platform/capability-node-link.ts";
import { objects } from "../../workers/objects/capability.ts";
import { d1Binding } from "./binding.ts";
import { DatabaseCalls } from "./calls.ts";
import { Databases } from "./databases.ts";
import { TimeTravel } from "./time-travel.ts";
import { Transfers } from "./transfers/transfers.ts";
import { storeUsage, tidyTransfers } from "./tidy.ts";
import { DatabaseUsage } from "./usage/usage.ts";
import { sendAtOwner, serveDatabases } from "./nodes/owner-calls.ts";
import { shown, d1AtEdges } from "./at-edges.ts";
import { declaration } from "./declaration.ts";
import { d1Errors } from "./errors.ts";
import { d1ErrorCodes } from "./api-errors.ts";

/** SQL databases of accounts. */
export const d1 = capability({
  name: "D1",
  declares: declaration,
  atEdges: d1AtEdges,
  needs: [storage, blobs, nodeLink, objects],
  create(needed) {
    const d1Databases = new Databases(
      needed.storage,
      needed.platformNamespaces,
      needed.objectRefusal === undefined,
    );
    const { objectRecovery } = needed;
    const d1Usage = new DatabaseUsage(needed.storage);
    const d1Calls = new DatabaseCalls(needed.objectCells, objectRecovery.answers, d1Usage);
    const { ownedObjects, nodeCalls } = needed;
    if (ownedObjects !== undefined && nodeCalls !== undefined) {
      d1Calls.atOwner = sendAtOwner(ownedObjects, d1Calls.atOwner);
      serveDatabases(nodeCalls, ownedObjects, d1Databases, d1Calls);
    }
    const d1TimeTravel = new TimeTravel(objectRecovery, d1Calls, {
      atOwner: needed.objectsAtOwner,
      files: needed.objectSharing,
    });
    const d1Transfers = new Transfers(d1Calls, needed.blobs, needed.logger);
    return { d1Databases, d1Calls, d1Transfers, d1TimeTravel, d1Usage };
  },
  operations: async () => (await import("./api.ts")).d1Operations,
  errors: [{ title: "D1", errors: d1Errors, codes: d1ErrorCodes }],
  bindings: ({ d1Databases, d1Calls }) => ({
    d1: {
      ...shown,
      handler: d1Binding(d1Databases, d1Calls),
      exists: async (accountId, id) => d1Databases.find(accountId, id) !== undefined,
    },
  }),
  load: ({ d1Databases }) => d1Databases.load(),
  run: ({ d1Transfers, d1Usage, d1Databases, logger }) => {
    const stops = [tidyTransfers(d1Transfers, logger), storeUsage(d1Usage, d1Databases, logger)];
    return async () => {
      await Promise.all(stops.map(async (stop) => stop()));
    };
  },
});
