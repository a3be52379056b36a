import type { ViaHeader } from "../../../edge/http/via.ts";
import type { Outbound } from "../../../edge/origin/outbound.ts";
import type { OpenObjectLog } from "../../../platform/object-log/open-object-log.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { RpcTunnels } from "../../../sandbox/gateway/rpc-tunnels.ts";
import type { ObjectFolders } from "../../../sandbox/objects/folders.ts";
import type { ObjectCells } from "../../../sandbox/objects/object-cells.ts";
import type { Alarms } from "../alarms/alarms.ts";
import type { ObjectNamespaces } from "../namespaces.ts";
import type { ObjectRuns } from "../object-runs.ts";
import { OwnedObjects } from "./owned-objects.ts";
import { OutgoingCalls, serveObjects } from "./passed-calls.ts";
import type { ObjectRecovery } from "../recovery/recovery.ts";
import type { ObjectSharing } from "./sharing.ts";

interface Parts {
  log: OpenObjectLog;
  cells: ObjectCells;
  folders: ObjectFolders;
  alarms: Alarms;
  recovery: ObjectRecovery;
  runs: ObjectRuns;
  namespaces: ObjectNamespaces;
  calls: ProcessCalls;
  /** The calls between the processes of this node. */
  ofEdges: ProcessCalls | undefined;
  storage: Storage;
  viaHeader: ViaHeader;
  outbound: Outbound;
  tunnels: RpcTunnels;
}

/** A node that is behind answers a call when it has the changes that the calling node had. */
const changesMsMax = 2000;

/** Runs the objects of this node's shards, for all nodes. Returns the calls of objects of all nodes. */
export function shareObjects(sharing: ObjectSharing, parts: Parts): OwnedObjects {
  const { log, cells, folders, namespaces, alarms, recovery, runs } = parts;
  const { calls, storage, viaHeader, outbound, tunnels } = parts;
  sharing.begin(log, {
    end: async (isIn) => cells.endAll(isIn),
    running: () => cells.namespaces,
    folders: async () => folders.list(),
    createFolder: async (namespace) => folders.create([namespace]),
    existing: async (ids) => namespaces.existing(ids),
    removeFolder: async (namespace) => folders.remove(namespace),
    async load(isIn) {
      await alarms.load(isIn);
      await recovery.load(isIn);
    },
    store: async () => alarms.store(),
    forget: (isIn) => alarms.drop(isIn),
  });
  const owned = new OwnedObjects(runs, sharing.owners, {
    calls,
    out: new OutgoingCalls(calls, viaHeader, outbound, parts.ofEdges),
    tunnels: tunnels.remote!,
    seq: () => storage.following?.seq,
    silentMs: sharing.leaseMs,
    reaches: async (seq) => (await storage.following?.reaches(seq, changesMsMax)) ?? true,
  });
  serveObjects(calls, runs, viaHeader, tunnels, async (call) => {
    await owned.takesOver(call);
  });
  return owned;
}
