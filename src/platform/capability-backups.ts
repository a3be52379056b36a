import { capability } from "../capability.ts";
import { storage } from "./capability.ts";
import { metrics } from "./observability/capability.ts";
import { checkBackupSettings, startBackups } from "./periodic-backups.ts";

/** Periodic backups, if `--backup-every` is set. */
export const backups = capability({
  name: "periodic backups",
  needs: [storage, metrics],
  create({ config }) {
    checkBackupSettings(config);
    return {};
  },
  async run(services) {
    const running = await startBackups(services.config, services.logger, services.metrics);
    return () => running?.stop();
  },
});
