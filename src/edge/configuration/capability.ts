import { capability } from "../../capability.ts";
import { rulesets } from "../../control/rulesets/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { records } from "../../dns/records/capability.ts";
import { platformNames } from "../../platform/config/derived.ts";
import { ownListeners, storage } from "../../platform/capability.ts";
import { EdgeSnapshotUpdater } from "./snapshot-updater.ts";

/** The zones, records and rules in memory, from which the edge routes requests. */
export const edgeConfiguration = capability({
  name: "edge configuration",
  processes: "all",
  needs: [storage, records, rulesets, zones, ownListeners],
  create({ config, ...needed }) {
    const updater = new EdgeSnapshotUpdater(
      needed.storage,
      needed.records,
      needed.rulesets,
      platformNames(config),
    );
    needed.zones.onChange((id, zone) => updater.setZone(id, zone));
    return { snapshotUpdater: updater, snapshot: updater.snapshot };
  },
  operations: async () => (await import("./api.ts")).edgeOperations,
  load: ({ snapshotUpdater }) => snapshotUpdater.load(),
});
