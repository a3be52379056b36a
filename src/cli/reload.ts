import type { Logger } from "pino";
import type { Config, SettingName } from "../platform/config/settings.ts";
import { settings } from "../platform/config/settings.ts";
import { reloadingState, type Notify } from "./service-manager.ts";
import { unawaited } from "../platform/util/uncaught.ts";
import type { RunningServer } from "../server.ts";
import { configOf } from "./config-options.ts";

/**
 * At SIGHUP, reads certificate and geo files again, and the configuration. Values of settings apply at the
 * start only, so the log names those that have changed.
 */
export function reloadOnSignal(
  server: Pick<RunningServer, "reload">,
  config: Config,
  options: Record<string, unknown>,
  { logger, notify }: { logger: Logger; notify: Notify },
): void {
  let reloading: Promise<void> | undefined;
  let isAskedAgain = false;
  const reload = async (): Promise<void> => {
    notify(reloadingState());
    try {
      do {
        isAskedAgain = false;
        await server.reload();
        logChanges(config, options, logger);
      } while (isAskedAgain);
    } finally {
      notify("READY=1");
    }
  };
  process.on("SIGHUP", () => {
    // Signals that arrive meanwhile are one.
    if (reloading !== undefined) isAskedAgain = true;
    else unawaited((reloading = reload().finally(() => (reloading = undefined))));
  });
}

function logChanges(config: Config, options: Record<string, unknown>, logger: Logger): void {
  try {
    const next = configOf(options).config;
    const isChanged = (name: SettingName): boolean =>
      JSON.stringify(next[name]) !== JSON.stringify(config[name]);
    const changed = (Object.keys(settings) as SettingName[]).filter(isChanged);
    logger.info({ needs_restart: changed.map((name) => settings[name].flag) }, "files were read again");
  } catch (error) {
    logger.error({ err: error }, "the configuration is wrong now, and the next start would refuse it");
  }
}
