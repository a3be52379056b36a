import type { Command } from "commander";
import { castLastNet } from "../platform/observability/last-net.ts";
import { reserve } from "../platform/listen/reserve.ts";
import { createLogger } from "../platform/observability/logger.ts";
import { collectWhenQuiet } from "../platform/util/collect-when-quiet.ts";
import { checkFiles } from "./check-files.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { welcome } from "./welcome.ts";
import { unawaited } from "../platform/util/uncaught.ts";

const drainDeadlineMs = 10_000;

export function registerServeCommand(program: Command): void {
  addConfigOptions(program.command("serve").description("run the platform")).action(
    async (options: Record<string, unknown>) => {
      const { config } = configOf(options);
      await checkFiles(config);
      const logger = createLogger(config.logLevel);
      let isReady = false;
      castLastNet(logger, () => isReady);
      const reserved = await reserve(config);
      // Loaded only now, so that a wrong setting, a taken port and a taken folder are refused at once.
      const { startServer } = await import("../server.ts");
      const server = await startServer(config, logger, { reserved });
      isReady = true;
      process.stdout.write(welcome(server, config));
      collectWhenQuiet();
      const stop = (signal: NodeJS.Signals): void => {
        logger.info({ signal }, "stopping");
        process.once(signal, () => process.exit(1)); // a second signal exits at once
        unawaited(
          server.close(drainDeadlineMs).then(
            () => process.exit(0),
            (error: unknown) => {
              logger.error({ err: error }, "could not stop cleanly");
              process.exit(1);
            },
          ),
        );
      };
      process.once("SIGTERM", stop);
      process.once("SIGINT", stop);
    },
  );
}
