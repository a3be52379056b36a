import { join } from "node:path";
import { capability } from "../../capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import type { Config } from "../../platform/config/settings.ts";
import { dataFolder, storage } from "../../platform/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { openObjectLog } from "../../platform/object-log/open-object-log.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { ObjectFolders } from "../../sandbox/objects/folders.ts";
import { ObjectSizes, type SizeParts } from "../../sandbox/objects/object-sizes.ts";
import { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import { objectSettings } from "../../sandbox/settings.ts";
import type { ShownBinding } from "../bindings-in-main.ts";
import { runtime } from "../runtime/capability.ts";
import { scripts } from "../scripts/capability.ts";
import { tails } from "../tail/capability.ts";
import type { DispatchNamespaces } from "../scripts/namespaces/namespaces.ts";
import type { ScriptOwner, Script } from "../scripts/script.ts";
import { Alarms } from "./alarms/alarms.ts";
import { namespaceOperations } from "./api.ts";
import { objectOperations } from "./api-object.ts";
import { objectsInMain, serveObjects } from "./edge-process-objects.ts";
import { ObjectMigrations } from "./migrate.ts";
import { ObjectNamespaces } from "./namespaces.ts";
import { ObjectRuns } from "./object-runs.ts";
import { ObjectQueries } from "./query/queries.ts";
import { AwaitedRestores } from "./recovery/restore-store.ts";
import { ObjectRecovery } from "./recovery/recovery.ts";
import { PlatformNamespaces } from "./platform-namespaces.ts";
import { declaration } from "./declaration.ts";
import { objectNamespaceType } from "./binding-type.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";

const ownersIn =
  (namespaces: Pick<DispatchNamespaces, "list">) =>
  ({ accountId, namespaceId }: Script): ScriptOwner | undefined => {
    if (namespaceId === null) return { accountId };
    const namespace = namespaces.list(accountId).find(({ id }) => id === namespaceId);
    return namespace && { accountId, namespace };
  };

const shown: ShownBinding<"durable_object_namespace"> = {
  type: objectNamespaceType,
  isolate: {
    module: "workers/objects/worker/binding.js",
    factory: "objectNamespace",
    className: "DurableObjectNamespace",
    systemEntrypoint: "Objects",
  },
};

/** In edge processes: passes calls of objects to main, which has the objects' cells and files. */
const objectsAtEdges = capability({
  name: "objects in main",
  processes: "edge",
  needs: [processes, outbound, sandbox, runtime],
  create({ calls, viaHeader, doors, ...needed }) {
    needed.runtime.objects = objectsInMain(calls!, viaHeader, doors, needed.outbound);
    return {};
  },
  bindings: () => ({ durable_object_namespace: shown }),
});

/** Durable Objects of scripts. */
export const objects = capability({
  name: "objects",
  declares: declaration,
  atEdges: objectsAtEdges,
  needs: [processes, storage, dataFolder, outbound, sandbox, scripts, tails, runtime, tracing],
  async create({ logger, config, folder, storage: database, ...needed }) {
    const objectLog = await openObjectLog(config, folder, logger);
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
      settings: objectSettings,
      folders: objectFolders,
      doors: needed.doors,
      logger,
      log: objectLog?.log,
      isShippedFirst: config.objectLogFirst,
      sizes: sizesOf(config, objectFolders, objectNamespaces, async (...given) => objectCells.end(...given)),
      refusal: database.engine === "sqlite" ? undefined : withoutOwner,
      namespacesOf: (group) => objectNamespaces.ofGroup(group),
    });
    const migrations = new ObjectMigrations(database, needed.scripts, objectCells);
    needed.versions.planObjects = async (change) => migrations.plan(change);
    const runs: ObjectRuns = new ObjectRuns({
      namespaces: objectNamespaces,
      scripts: needed.scripts,
      runtime: needed.runtime,
      cells: objectCells,
      ownerOf: ownersIn(needed.namespaces),
      generation: () => `${needed.scripts.revision}.${needed.namespaces.revision}.${needed.tails.revision}`,
      isWatched: (caller) => needed.tails.isWatched(caller),
      tracer: needed.tracer,
    });
    needed.runtime.objects = runs;
    const objectAlarms = new Alarms(database, runs.acting, logger);
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
    return {
      objectNamespaces,
      objectFolders,
      objectCells,
      objectAlarms,
      objectRuns: runs,
      objectQueries: new ObjectQueries(),
      platformNamespaces: new PlatformNamespaces(objectCells),
      objectLog,
      objectRecovery,
    };
  },
  operations: [...namespaceOperations, ...objectOperations],
  errors: [{ title: "Durable Objects", errors: objectErrors, codes: scriptErrorCodes }],
  bindings: () => ({
    durable_object_namespace: shown,
  }),
  metrics: async ({ objectCells, objectFolders, objectAlarms }) =>
    (await import("./metrics.ts")).objectMetrics(objectCells, objectFolders, objectAlarms),
  async load({ objectNamespaces, objectCells, objectAlarms, objectRecovery, ...services }) {
    if (services.own.role === "main")
      serveObjects(services.calls!, services.objectRuns, services.viaHeader, services.doors);
    await objectNamespaces.start();
    await objectAlarms.load();
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
    underWay: () => objectAlarms.underWay,
  }),
  async reset({ objectAlarms, objectRecovery }) {
    await objectAlarms.reset();
    await objectRecovery.load();
  },
  run: ({ objectAlarms, objectCells }) => (objectCells.isRefused ? undefined : objectAlarms.start()),
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

/** Says "objects" because the client of D1 replaces the words "Durable Object" in messages. */
const withoutOwner =
  "Objects and D1 databases do not run on this installation: its configuration is in PostgreSQL, which several nodes may share, and each of them needs a single owner.";
const notRemoved = "the objects of a deleted namespace could not be removed; the next start removes them";
