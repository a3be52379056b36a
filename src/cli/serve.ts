import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { Logger } from "pino";
import { castLastNet } from "../platform/observability/last-net.ts";
import { takePassedSockets, withPassed } from "../platform/listen/passed.ts";
import { reserve } from "../platform/listen/reserve.ts";
import { createLogger } from "../platform/observability/logger.ts";
import { ConfigError } from "../platform/config/config.ts";
import type { Config } from "../platform/config/settings.ts";
import type { Reserved } from "../platform/listen/reserve.ts";
import { takeSupervised, notifySupervisor, type Supervised } from "../platform/processes/supervised.ts";
import type { RunningServer } from "../server.ts";
import type { PlatformFilling } from "./testing/initial-state.ts";
import { collectStart, collectWhenQuiet } from "../platform/util/collect-when-quiet.ts";
import { exitSoon } from "./exit-soon.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { reloadOnSignal } from "./reload.ts";
import { stopWhenOrphaned } from "./stop-when-orphaned.ts";
import { welcome } from "./welcome.ts";
import { connectServiceManager, type Notify } from "./service-manager.ts";
import { endsWithin } from "../platform/util/ends-within.ts";
import { unawaited } from "../platform/util/uncaught.ts";
import { print } from "./output.ts";

const drainDeadlineMs = 10_000;
/** How long a signal waits for the end of the start. */
const startTimeoutMs = 1000;
/** Time until the exit when a stopped server leaves handles open. */
const exitTimeoutMs = 2000;
/** How often main, and an edge process that waits for main, tells the supervisor that it responds. */
const aliveMs = 1000;
/** Time until the exit when a failed start leaves handles open. */
const failedExitTimeoutMs = 200;

type Stoppable = Pick<RunningServer, "reload" | "announceEnd" | "giveBack" | "close">;

/** `serve`: runs the platform until a signal. See docs/operations.md for the order of a start and a stop. */
export function registerServeCommand(program: Command): void {
  addConfigOptions(program.command("serve").description("run the platform")).action(
    async (options: Record<string, unknown>) => {
      const supervised = takeSupervised(process.env);
      const passed = takePassedSockets(process.env, supervised?.addresses);
      const configured = configOf(options).config;
      const config = { ...withPassed(configured, passed), ...supervised?.addresses };
      // For an edge process, its supervisor has done that.
      if (supervised?.role !== "edge") await (await import("./check-files.ts")).checkFiles(config);
      const logger = loggerOf(config, supervised);
      const notify = await connectServiceManager(logger);
      if (supervised === undefined) stopWhenOrphaned(logger);
      if (supervised === undefined && config.edgeProcesses > 0) {
        refuseMixedLines(config);
        const { supervise } = await import("./processes/supervise.ts");
        await supervise(config, passed, logger, notify);
        return;
      }
      let isReady = false;
      castLastNet(logger, () => isReady);
      // Otherwise the signal would open Node's inspector.
      process.on("SIGUSR1", () => logger.info("SIGUSR1 is ignored"));
      process.on("SIGUSR2", () =>
        logger.info("SIGUSR2 is ignored: without --edge-processes, nothing is replaced"),
      );
      const stopping = stopOnSignals(config.lameDuckSeconds * 1000, logger, notify, supervised !== undefined);
      const reserved = await reserve(config, passed, supervised?.role);
      const server = await startPart(config, logger, supervised, reserved).catch((error: unknown) => {
        exitSoon(failedExitTimeoutMs);
        throw error;
      });
      isReady = true;
      collectWhenQuiet();
      reloadOnSignal(server, configured, options, { logger, notify });
      notify("READY=1");
      stopping.started(server);
    },
  );
}

function refuseMixedLines({ accessLog }: Config): void {
  if (accessLog === "-")
    throw new ConfigError(
      "Expected a file for --access-log with --edge-processes but received -: the lines of several processes would mix",
    );
}

/** Each line of the log names the process, if the node has several. */
function loggerOf({ logLevel }: Config, supervised: Supervised | undefined): Logger {
  const logger = createLogger(logLevel);
  if (supervised === undefined) return logger;
  const { role, id } = supervised;
  return logger.child({ process: role === "main" ? role : `edge ${id}` });
}

/** Starts the platform, or one process of a node that has several, and prints when it is ready. */
async function startPart(
  config: Config,
  logger: Logger,
  supervised: Supervised | undefined,
  reserved: Reserved,
): Promise<Stoppable> {
  // Loaded only now, so that a wrong setting, a taken port and a taken folder are refused at once.
  if (supervised?.role === "edge") {
    const { startEdgeProcess } = await import("../edge-process.ts");
    const waiting = setInterval(() => notifySupervisor({ is: "alive" }), aliveMs);
    const joined = (): void => clearInterval(waiting);
    const edge = await startEdgeProcess(config, logger, supervised, reserved, joined);
    collectStart(); // other processes accept connections meanwhile
    notifySupervisor({ is: "ready" });
    return edge;
  }
  const fill = await fillOf(config);
  const { startServer } = await import("../server.ts");
  const own = supervised === undefined ? {} : { own: { role: "main", supervised } as const };
  const server = await startServer(config, logger, { reserved, fill, ...own });
  if (supervised === undefined || supervised.serving === 0) print(welcome(server, config));
  if (supervised !== undefined) {
    notifySupervisor({ is: "ready", dns: server.ready.dns });
    setInterval(() => notifySupervisor({ is: "alive" }), aliveMs).unref();
  }
  return server;
}

/** The content that a platform under test begins with, unless it is a saved state. */
async function fillOf({ testState }: Config): Promise<PlatformFilling | undefined> {
  if (testState === undefined) return undefined;
  const { initialStateOf } = await import("./testing/initial-state.ts");
  return initialStateOf(testState);
}

/**
 * Stops at the first SIGTERM or SIGINT, and exits at the second. A signal during the start takes effect after it, because
 * the ready file may already have reported that the platform is ready.
 */
function stopOnSignals(
  lameDuckMs: number,
  logger: Logger,
  notify: Notify,
  isSupervised: boolean,
): { started: (server: Stoppable) => void } {
  const { promise: started, resolve } = Promise.withResolvers<Stoppable>();
  const lameDuck = new AbortController();
  let isStopping = false;
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (isStopping) process.exit(1);
    isStopping = true;
    logger.info({ signal }, "stopping");
    notify("STOPPING=1");
    try {
      if (!(await endsWithin(startTimeoutMs, started))) throw new Error("the start had not ended");
      const server = await started;
      server.announceEnd();
      const lame = delay(lameDuckMs, undefined, { signal: lameDuck.signal }).catch(() => {});
      await Promise.all([server.giveBack(), lame]);
      await server.close(drainDeadlineMs);
      process.exitCode = 0;
    } catch (error) {
      logger.error({ err: error }, "could not stop cleanly");
      process.exitCode = 1;
    }
    exitSoon(exitTimeoutMs);
  };
  process.on("SIGTERM", () => unawaited(stop("SIGTERM")));
  // A terminal sends SIGINT to the supervisor, too, which then stops its processes in their order.
  process.on("SIGINT", () => isSupervised || unawaited(stop("SIGINT")));
  if (isSupervised)
    process.once("message", () => {
      lameDuck.abort(); // edge processes have waited, or others serve in their place
      unawaited(
        (async () => {
          const server = await started;
          server.announceEnd();
          await server.giveBack();
        })(),
      );
    });
  // The program that started this one has ended: bin/selvedge.js under an older Node.
  process.once("disconnect", () => unawaited(stop("SIGTERM")));
  process.channel?.unref();
  return { started: resolve };
}
