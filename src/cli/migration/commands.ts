import type { Command } from "commander";
import { registerApplyCommand } from "./command-apply.ts";
import { registerDiffCommand } from "./command-diff.ts";
import { registerExportCommand } from "./command-export.ts";
import { registerImportCommand } from "./command-import.ts";

/** The commands of migrations: `import`, `apply`, `diff` and `export`. */
export function registerMigrationCommands(program: Command): void {
  registerImportCommand(program);
  registerApplyCommand(program);
  registerDiffCommand(program);
  registerExportCommand(program);
}
