import type { Command } from "commander";
import { registerApplyCommand } from "./command-apply.ts";
import { registerDiffCommand } from "./command-diff.ts";
import { registerImportCommand } from "./command-import.ts";

/** The commands that read an account, write it to an installation, and compare places. */
export function registerMigrationCommands(program: Command): void {
  registerImportCommand(program);
  registerApplyCommand(program);
  registerDiffCommand(program);
}
