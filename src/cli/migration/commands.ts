import type { Command } from "commander";
import { registerApplyCommand } from "./command-apply.ts";
import { registerDiffCommand } from "./command-diff.ts";
import { registerExportCommand } from "./command-export.ts";
import { registerImportCommand } from "./command-import.ts";

/** The commands that read an account, write it to an installation, compare places, and write them for other programs. */
export function registerMigrationCommands(program: Command): void {
  registerImportCommand(program);
  registerApplyCommand(program);
  registerDiffCommand(program);
  registerExportCommand(program);
}
