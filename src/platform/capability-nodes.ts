import { capability } from "../capability.ts";
import { blobs, dataFolder, storage } from "./capability.ts";
import { blobUrlOf, blobLocation } from "./open-blobs.ts";
import { identityIn, temporaryIdentity } from "./storage/nodes/node-identity.ts";
import { SharedRates } from "./storage/nodes/shared-rates.ts";
import { NodeRegistry } from "./storage/nodes/node-registry.ts";

/** The table of the installation's nodes, with this one in it. */
export const nodes = capability({
  name: "nodes",
  needs: [dataFolder, storage, blobs],
  async create({ config, folder, logger, storage: database }) {
    const identity = config.ephemeral ? temporaryIdentity() : identityIn(folder);
    const { shown } = await blobLocation(blobUrlOf(config), database, folder);
    const nodeRegistry = new NodeRegistry(database, identity, shown, logger);
    nodeRegistry.seq = () => database.following?.takenOver;
    await nodeRegistry.start();
    const sharedRates = new SharedRates(database, nodeRegistry, logger);
    return { nodeRegistry, sharedRates };
  },
  metrics: async ({ nodeRegistry }) =>
    (await import("./observability/node-metrics.ts")).nodeMetrics(nodeRegistry),
  health: ({ nodeRegistry }) => ({ node: () => nodeRegistry.check() }),
  run({ sharedRates }) {
    sharedRates.start();
    return () => sharedRates.stop();
  },
  close: ({ nodeRegistry }) => nodeRegistry.stop(),
});
