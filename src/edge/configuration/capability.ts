import { capability } from "../../capability.ts";
import { rulesets } from "../../control/rulesets/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { nameServer } from "../../dns/name-server/capability.ts";
import { records } from "../../dns/records/capability.ts";
import { platformNames } from "../../platform/config/derived.ts";
import { storage } from "../../platform/capability.ts";
import { edgeOperations } from "./api.ts";
import { EdgeSnapshotUpdater } from "./snapshot-updater.ts";

/** The zones, records and rules in memory, from which the edge routes requests. */
export const edgeConfiguration = capability({
  name: "edge configuration",
  needs: [storage, records, rulesets, zones, nameServer],
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
  operations: edgeOperations,
  load: ({ snapshotUpdater }) => snapshotUpdater.load(),
});
