import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { Logger } from "pino";
import { castLastNet } from "../platform/observability/last-net.ts";
import { takePassedSockets, withPassed } from "../platform/listen/passed.ts";
import { reserve } from "../platform/listen/reserve.ts";
import { createLogger } from "../platform/observability/logger.ts";
import type { RunningServer } from "../server.ts";
import { collectWhenQuiet } from "../platform/util/collect-when-quiet.ts";
import { checkFiles } from "./check-files.ts";
import { exitSoon } from "./exit-soon.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { reloadOnSignal } from "./reload.ts";
import { welcome } from "./welcome.ts";
import { connectServiceManager, type Notify } from "./service-manager.ts";
import { unawaited } from "../platform/util/uncaught.ts";

const drainDeadlineMs = 10_000;
/** How long a signal waits for the end of the start. */
const startTimeoutMs = 1000;
/** For what a stopped server leaves open. */
const exitTimeoutMs = 2000;
/** For what a failed start leaves open. */
const failedExitTimeoutMs = 200;

/** `serve`: runs the platform until a signal. See docs/operations.md for the order of a start and a stop. */
export function registerServeCommand(program: Command): void {
  addConfigOptions(program.command("serve").description("run the platform")).action(
    async (options: Record<string, unknown>) => {
      const passed = takePassedSockets(process.env);
      const configured = configOf(options).config;
      const config = withPassed(configured, passed);
      await checkFiles(config);
      const logger = createLogger(config.logLevel);
      const notify = await connectServiceManager(logger);
      let isReady = false;
      castLastNet(logger, () => isReady);
      // Otherwise the signal would open Node's inspector.
      process.on("SIGUSR1", () => logger.info("SIGUSR1 is ignored"));
      const stopping = stopOnSignals(config.lameDuckSeconds * 1000, logger, notify);
      const reserved = await reserve(config, passed);
      // Loaded only now, so that a wrong setting, a taken port and a taken folder are refused at once.
      const { startServer } = await import("../server.ts");
      const server = await startServer(config, logger, { reserved }).catch((error: unknown) => {
        exitSoon(failedExitTimeoutMs);
        throw error;
      });
      isReady = true;
      process.stdout.write(welcome(server, config));
      collectWhenQuiet();
      reloadOnSignal(server, configured, options, { logger, notify });
      notify("READY=1");
      stopping.started(server);
    },
  );
}

/**
 * Stops at the first SIGTERM or SIGINT, and exits at the second. A signal during the start is obeyed at its end, because the
 * ready file may already have reported that the platform is there.
 */
function stopOnSignals(
  lameDuckMs: number,
  logger: Logger,
  notify: Notify,
): { started: (server: RunningServer) => void } {
  const { promise: started, resolve } = Promise.withResolvers<RunningServer>();
  let isStopping = false;
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (isStopping) process.exit(1);
    isStopping = true;
    logger.info({ signal }, "stopping");
    notify("STOPPING=1");
    try {
      const server = await Promise.race([started, delay(startTimeoutMs)]);
      if (server === undefined) throw new Error("the start had not ended");
      server.announceEnd();
      await Promise.all([server.giveBack(), delay(lameDuckMs)]);
      await server.close(drainDeadlineMs);
      process.exitCode = 0;
    } catch (error) {
      logger.error({ err: error }, "could not stop cleanly");
      process.exitCode = 1;
    }
    exitSoon(exitTimeoutMs);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => unawaited(stop(signal)));
  // The program that started this one has ended: bin/selvedge.js under an older Node.
  process.once("disconnect", () => unawaited(stop("SIGTERM")));
  process.channel?.unref();
  return { started: resolve };
}
