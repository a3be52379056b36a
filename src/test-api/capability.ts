import { randomBytes } from "node:crypto";
import { capability } from "../capability.ts";
import { api, health } from "../control/api/server/capability.ts";
import { owner } from "../control/members/capability.ts";
import { workflows } from "../products/workflows/capability.ts";
import { objects } from "../workers/objects/capability.ts";
import { runtime } from "../workers/runtime/capability.ts";
import { scripts } from "../workers/scripts/capability.ts";
import { sandbox } from "../sandbox/capability.ts";
import { nameServer } from "../dns/name-server/capability.ts";
import { outbound } from "../edge/origin/capability.ts";
import { blobs, dataFolder, ownListeners, reservation, storage } from "../platform/capability.ts";
import { ConfigError } from "../platform/config/config.ts";
import { setIds } from "../platform/util/ids.ts";
import { randomUUID } from "node:crypto";
import { Mover } from "./advance.ts";
import { ControlSurface, controlPath } from "./control.ts";
import { declaration } from "./declaration.ts";
import { Epochs } from "./epochs.ts";
import { TestFaults } from "./faults/faults.ts";
import { dnsFaults } from "./faults/dns-faults.ts";
import { cellFaults } from "./faults/cell-faults.ts";
import { FaultyWrites } from "./faults/storage-faults.ts";
import { refuseProduction } from "./guard.ts";
import { TestedOutbound } from "./outbound/outbound.ts";
import { mockedWorkflows } from "./workflows/routes.ts";
import { testedOrigins } from "./outbound/tested-origins.ts";
import { RecordedCalls } from "./journal.ts";
import { controlRoutes } from "./routes.ts";
import { SeededIds } from "./seeded-ids.ts";
import { SeenCalls } from "./seen-calls.ts";
import { KeptFiles } from "./states/kept-files.ts";
import { takeFiles } from "./states/saved-state.ts";
import { startName, States } from "./states/states.ts";
import { MovableClock } from "./test-clock.ts";
import { setScriptClock } from "../sandbox/process/script-clock.ts";
import { setScriptEpoch } from "../sandbox/process/script.ts";

/** The clock and the ids of a platform under test. Created first, because other capabilities use them. */
export const testMode = capability({
  name: "test mode",
  declares: declaration,
  needs: [reservation],
  create({ config }) {
    if (!config.testApi) return { testMode: undefined };
    refuseProduction(config);
    if (config.testState !== undefined && !config.ephemeral)
      throw new ConfigError("Expected --ephemeral with --test-state");
    const epochs = new Epochs();
    const seed = config.testSeed ?? randomBytes(6).toString("hex");
    const ids = new SeededIds(seed, epochs);
    const clock = new MovableClock();
    epochs.open();
    setIds(ids.next);
    setScriptClock(() => clock.offsetMs);
    clock.open(config.testClock, config.testNow === undefined ? undefined : Date.parse(config.testNow));
    return { testMode: { epochs, seed, ids, clock } };
  },
  close({ testMode: mode }) {
    if (mode === undefined) return;
    mode.epochs.close();
    mode.clock.close();
    setIds(randomUUID);
    setScriptEpoch(0);
    setScriptClock();
  },
});

/** Lets tests control the platform. Starts last, because it saves the state of all other capabilities at the start. */
export const testApi = capability({
  name: "test API",
  needs: [
    testMode,
    ownListeners,
    dataFolder,
    storage,
    blobs,
    objects,
    health,
    api,
    owner,
    outbound,
    nameServer,
    sandbox,
    scripts,
    runtime,
    workflows,
  ],
  async create({ testMode: mode, health: node, folder, storage: database, objectFolders, objectCells }) {
    if (mode === undefined) return { testControl: undefined };
    node.mode = "test";
    const files = new KeptFiles(folder, {
      list: async () => objectFolders.list(),
      endAll: async () => objectCells.endAll(),
      forget: async (namespace) => objectCells.forget(namespace),
    });
    await files.open(await database.direct!(takeFiles));
    const journal = new RecordedCalls();
    const faults = new TestFaults(mode.seed);
    const calls = new SeenCalls({ ...mode, journal, faults: faults.api });
    const requests = new TestedOutbound();
    return {
      testControl: { secret: randomBytes(24).toString("base64url"), journal, faults, calls, requests, files },
    };
  },
  async listen(services, contributions) {
    const { testMode: mode, testControl, storage: database, apiHooks, apiListener, logger } = services;
    if (mode === undefined || testControl === undefined) return;
    const { epochs, seed, ids, clock } = mode;
    const { journal, faults, calls, requests, files, secret } = testControl;
    const writes = new FaultyWrites(faults.storage, epochs);
    const { reset, due, expire } = contributions;
    const states = new States({ storage: database, files, epochs, ids, clock, reset, own: writes.own });
    const own = async <T>(work: () => Promise<T>): Promise<T> => epochs.outside(async () => writes.own(work));
    const mover = new Mover({ clock, due, expire, callsInFlight: () => calls.inFlight, own });
    await database.direct!((connection) => {
      epochs.rowsWritten = () => Number(connection.prepare("select total_changes() as rows").get()!["rows"]);
    });
    database.writeHooks = writes;
    services.blobsUnderTest.beforeWrite = writes.blob;
    services.nameServer.underTest(dnsFaults(faults.dns));
    const origins = testedOrigins(services.edgeSettings, requests, faults);
    services.originsUnderTest.hooks = origins;
    services.cellsUnderTest.faultFor = cellFaults(faults.cells);
    apiHooks.around = calls.around;
    apiHooks.read = calls.read;
    const onFault = (error: unknown): void => logger.error({ err: error }, "work of the test kit failed");
    const accountId = (): string => services.owner.current!.account.id;
    const tested = { ...services, accountId, settle: async () => mover.settle(), onFault };
    const apiUrl = (): string => `http://${apiListener.authority}/client/v4`;
    const routes = controlRoutes({
      storage: database,
      states,
      journal,
      faults,
      outbound: requests,
      cells: {
        scripts: services.cellsUnderTest,
        workflows: services.workflowEngine.underTest,
        objects: services.objectCells,
      },
      workflows: tested,
      mocked: mockedWorkflows(tested),
      scripts: { ...services, accountId },
      clock,
      mover,
      seed,
      operations: new Set(contributions.operations.map(({ operation }) => operation.id)),
      apiUrl,
      onFault,
    });
    apiHooks.request = new ControlSurface(secret, routes, logger).answer;
    await states.keep(startName);
    if (clock.mode === "skip") mover.skip(onFault);
    return {
      close() {
        mover.stop();
        origins.close();
      },
    };
  },
});

/** The control surface in the ready file. */
export const controlOf = (authority: string, secret: string): { url: string; token: string } => ({
  url: `http://${authority}${controlPath}`,
  token: secret,
});
