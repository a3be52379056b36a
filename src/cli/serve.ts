import type { Command } from "commander";
import { createLogger } from "../observability/logger.ts";
import { startServer } from "../server.ts";
import { collectWhenQuiet } from "../util/collect-when-quiet.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { welcome } from "./welcome.ts";

const drainDeadlineMs = 10_000;

export function registerServeCommand(program: Command): void {
  addConfigOptions(program.command("serve").description("run the platform")).action(
    async (options: Record<string, unknown>) => {
      const { config } = configOf(options);
      const logger = createLogger(config.logLevel);
      const server = await startServer(config, logger);
      process.stdout.write(welcome(server, config));
      collectWhenQuiet();
      const stop = (signal: NodeJS.Signals): void => {
        logger.info({ signal }, "stopping");
        process.once(signal, () => process.exit(1)); // asked twice: at once
        void server.close(drainDeadlineMs).then(
          () => process.exit(0),
          (error: unknown) => {
            logger.error({ err: error }, "could not stop cleanly");
            process.exit(1);
          },
        );
      };
      process.once("SIGTERM", stop);
      process.once("SIGINT", stop);
    },
  );
}
