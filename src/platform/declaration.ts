import { declare } from "../declaration.ts";
import { backupSettings } from "./config/settings-backup.ts";
import { nodeSettings } from "./config/settings-node.ts";

/** A node with its storage and its backups. */
export const declaration = declare({
  settings: { ...nodeSettings, ...backupSettings },
});
