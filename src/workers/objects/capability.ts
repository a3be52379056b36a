import { join } from "node:path";
import { capability } from "../../capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import type { Config } from "../../platform/config/settings.ts";
import { dataFolder, storage } from "../../platform/capability.ts";
import { nodeLink } from "../../platform/capability-node-link.ts";
import { nodes } from "../../platform/capability-nodes.ts";
import { processes } from "../../platform/capability-processes.ts";
import type { ProcessCalls } from "../../platform/process-calls/calls.ts";
import { openObjectLog, type OpenObjectLog } from "../../platform/object-log/open-object-log.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { ObjectFolders } from "../../sandbox/objects/folders.ts";
import { ObjectSizes, type SizeParts } from "../../sandbox/objects/object-sizes.ts";
import { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import { objectSettings, remoteTunnelsMax } from "../../sandbox/settings.ts";
import { runtime } from "../runtime/capability.ts";
import type { ObjectGate } from "../runtime/object-gate.ts";
import { scripts } from "../scripts/capability.ts";
import { tails } from "../tail/capability.ts";
import type { DispatchNamespaces } from "../scripts/namespaces/namespaces.ts";
import type { ScriptOwner, Script } from "../scripts/script.ts";
import { Alarms } from "./alarms/alarms.ts";
import { AtOwner } from "./nodes/at-owner.ts";
import { serveObjects } from "./nodes/passed-calls.ts";
import { shareObjects } from "./nodes/share-objects.ts";
import { ObjectSharing } from "./nodes/sharing.ts";
import { ObjectMigrations } from "./migrate.ts";
import { ObjectNamespaces } from "./namespaces.ts";
import { objectWork } from "./object-work.ts";
import { ObjectRuns } from "./object-runs.ts";
import { ObjectQueries } from "./query/queries.ts";
import { AwaitedRestores } from "./recovery/restore-store.ts";
import { ObjectRecovery } from "./recovery/recovery.ts";
import { PlatformNamespaces } from "./platform-namespaces.ts";
import { objectsAtEdges, shown } from "./at-edges.ts";
import { declaration } from "./declaration.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";

const ownersIn =
  (namespaces: Pick<DispatchNamespaces, "list">) =>
  ({ accountId, namespaceId }: Script): ScriptOwner | undefined => {
    if (namespaceId === null) return { accountId };
    const namespace = namespaces.list(accountId).find(({ id }) => id === namespaceId);
    return namespace && { accountId, namespace };
  };

/** Durable Objects of scripts. */
export const objects = capability({
  name: "objects",
  declares: declaration,
  atEdges: objectsAtEdges,
  needs: [
    processes,
    storage,
    dataFolder,
    nodes,
    nodeLink,
    outbound,
    sandbox,
    scripts,
    tails,
    runtime,
    tracing,
  ],
  async create({ logger, config, folder, nodeCalls, storage: database, ...needed }) {
    const objectRefusal = ObjectSharing.refusalOf(database, config, nodeCalls);
    const sharing = sharingOf(objectRefusal, nodeCalls, {
      ...{ config, storage: database, folder, logger, node: needed.nodeRegistry },
    });
    const objectLog = await openObjectLog(config, folder, logger, sharing?.log);
    const objectNamespaces = new ObjectNamespaces(database, needed.scripts);
    const objectFolders = new ObjectFolders(join(folder, "objects"));
    const objectCells: ObjectCells = new ObjectCells({
      standing: async (object) => runs.acting.standing(object),
      alarm: async (object, notice) => objectAlarms.note(object, notice),
      bookmark: async (object, order) => objectRecovery.answer(object, order),
      restores: objectLog && {
        isAwaited: (object) => objectRecovery.isAwaited(object),
        run: async (object) => objectRecovery.restoreBeforeStart(object),
      },
      settings: { ...objectSettings, remoteTunnels: nodeCalls === undefined ? 0 : remoteTunnelsMax },
      folders: objectFolders,
      tunnels: needed.tunnels,
      logger,
      log: objectLog?.log,
      isShippedFirst: config.objectLogFirst,
      sizes: sizesOf(config, objectFolders, objectNamespaces, async (...given) => objectCells.end(...given)),
      refusal: objectRefusal,
      ownership: sharing,
      namespacesOf: (group) => objectNamespaces.ofGroup(group),
    });
    const migrations = new ObjectMigrations(objectRefusal === undefined, needed.scripts, objectCells);
    needed.versions.planObjects = async (change) => migrations.plan(change);
    const { scripts: all, runtime: runsOf, namespaces: dispatch, tails: logs, tracer } = needed;
    const runs: ObjectRuns = new ObjectRuns({
      ...{ namespaces: objectNamespaces, scripts: all, runtime: runsOf, cells: objectCells, tracer },
      ownerOf: ownersIn(dispatch),
      generation: () => `${all.revision}.${dispatch.revision}.${logs.revision}`,
      isWatched: (caller) => logs.isWatched(caller),
    });
    const objectAlarms = new Alarms(database, runs.acting, logger, sharing?.rightTo);
    objectNamespaces.onGone((id) => {
      objectAlarms.forget(id);
      const gone = objectCells.forget(id);
      unawaited(gone.catch((error: unknown) => logger.error({ err: error, namespace: id }, notRemoved)));
    });
    const objectRecovery: ObjectRecovery = new ObjectRecovery(objectLog, objectCells, {
      days: config.objectLogDays,
      alarms: objectAlarms,
      awaited: new AwaitedRestores(database),
    });
    const parts = { objectLog, objectNamespaces, objectFolders, objectCells, objectAlarms, objectRecovery };
    const shared = objectsOfNodes(sharing, nodeCalls, {
      ...{ ...needed, ...parts, storage: database, runs, ofEdges: needed.calls },
    });
    needed.runtime.objects = shared.objectCalls;
    return {
      ...{ ...parts, ...shared },
      ...{ objectRefusal, objectSharing: sharing, objectRuns: runs },
      platformNamespaces: new PlatformNamespaces(objectCells),
    };
  },
  async operations() {
    const { namespaceOperations } = await import("./api.ts");
    const { objectOperations } = await import("./api-object.ts");
    return [...namespaceOperations, ...objectOperations];
  },
  errors: [{ title: "Durable Objects", errors: objectErrors, codes: scriptErrorCodes }],
  bindings: () => ({
    durable_object_namespace: shown,
  }),
  async metrics({ objectCells, objectFolders, objectAlarms, objectSharing }) {
    const { objectMetrics, shardMetrics } = await import("./metrics.ts");
    return [
      ...objectMetrics(objectCells, objectFolders, objectAlarms),
      ...shardMetrics(objectSharing?.owners),
    ];
  },
  async load({ objectNamespaces, objectCells, objectAlarms, objectRecovery, ...services }) {
    if (services.own.role === "main")
      serveObjects(services.calls!, services.objectCalls, services.viaHeader, services.tunnels);
    await objectNamespaces.start();
    if (services.objectSharing === undefined) await objectAlarms.load();
    await objectRecovery.load();
    await objectCells.sweep(async (ids) => objectNamespaces.existing(ids));
  },
  due: ({ objectNamespaces, objectAlarms }) => ({
    next: async () => objectAlarms.nextOn,
    run: async () =>
      objectAlarms.look().map(({ namespace, id }) => {
        const found = objectNamespaces.find(namespace);
        return { class: found?.className, namespace, object: id };
      }),
    inFlight: () => objectAlarms.inFlight,
    store: async () => objectAlarms.store(),
  }),
  async reset({ objectAlarms, objectRecovery }) {
    await objectAlarms.reset();
    await objectRecovery.load();
  },
  run({ objectRefusal, objectSharing, objectAlarms }) {
    if (objectRefusal !== undefined) return undefined;
    const stopAlarms = objectAlarms.start();
    const sharing = objectSharing?.start();
    return {
      giveBack: async () => sharing?.giveBack(),
      async stop() {
        await sharing?.stop();
        await stopAlarms();
      },
    };
  },
  async close({ objectCells, objectLog }) {
    await objectCells.close();
    await objectLog?.close();
  },
});

const sizesOf = (
  config: Pick<Config, "objectMegabytesMax" | "objectAccountMegabytesMax">,
  { path }: ObjectFolders,
  namespaces: ObjectNamespaces,
  end: SizeParts["end"],
): ObjectSizes =>
  new ObjectSizes({
    folder: path,
    limits: {
      objectBytesMax: config.objectMegabytesMax * mebibyte,
      accountBytesMax: config.objectAccountMegabytesMax && config.objectAccountMegabytesMax * mebibyte,
    },
    accountOf: (id) => namespaces.find(id)?.accountId,
    namespacesOf: (accountId) => namespaces.ofAccount(accountId),
    end,
  });

/** The calls of objects and the work on objects, at the nodes that have them. */
function objectsOfNodes(
  sharing: ObjectSharing | undefined,
  calls: ProcessCalls | undefined,
  parts: {
    objectLog: OpenObjectLog | undefined;
    objectNamespaces: ObjectNamespaces;
    objectFolders: ObjectFolders;
    objectCells: ObjectCells;
    objectAlarms: Alarms;
    objectRecovery: ObjectRecovery;
    runs: ObjectRuns;
  } & Pick<Parameters<typeof shareObjects>[1], "storage" | "viaHeader" | "outbound" | "tunnels" | "ofEdges">,
) {
  const { objectLog, runs, storage: database, viaHeader, outbound: out, tunnels, ofEdges } = parts;
  const [cells, folders, alarms] = [parts.objectCells, parts.objectFolders, parts.objectAlarms];
  const namespaces = parts.objectNamespaces;
  const here = { cells, folders, namespaces, alarms, recovery: parts.objectRecovery, runs };
  const ownedObjects =
    sharing &&
    shareObjects(sharing, {
      ...{ ...here, log: objectLog!, calls: calls!, ofEdges, storage: database },
      ...{ viaHeader, outbound: out, tunnels },
    });
  const objectQueries = new ObjectQueries();
  const objectsAtOwner = new AtOwner(ownedObjects, calls);
  const work = objectWork(objectsAtOwner, {
    ...{ ...here, queries: objectQueries, files: sharing },
  });
  const objectCalls: ObjectGate = ownedObjects ?? runs;
  return { ownedObjects, objectCalls, objectQueries, objectsAtOwner, objectWork: work };
}

const sharingOf = (
  refusal: string | undefined,
  calls: ProcessCalls | undefined,
  parts: Omit<ConstructorParameters<typeof ObjectSharing>[0], "calls">,
): ObjectSharing | undefined =>
  refusal !== undefined || calls === undefined ? undefined : new ObjectSharing({ ...parts, calls });

const notRemoved = "the objects of a deleted namespace could not be removed; the next start removes them";
