import { Command, CommanderError } from "commander";
import { registerConfigCommand } from "./cli/config.ts";
import { registerServeCommand } from "./cli/serve.ts";
import { explain } from "./cli/failure.ts";
import { printNote } from "./cli/output.ts";
import { programVersion } from "./platform/storage/program-version.ts";

/** Runs the command line. Exit codes: 0 done, 1 failed (also for a wrong setting), 2 called wrongly. */
export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("selvedge")
    .description("A self-hosted edge platform that speaks the Cloudflare API v4")
    .showSuggestionAfterError()
    .showHelpAfterError("(see --help)")
    .version(programVersion)
    .exitOverride();
  registerServeCommand(program);
  registerConfigCommand(program);
  // Slow to load, and not needed for the start of serve.
  if (argv[2] !== "serve") {
    (await import("./cli/backup.ts")).registerBackupCommands(program);
    (await import("./cli/blobs.ts")).registerBlobsCommand(program);
    (await import("./cli/doctor/doctor.ts")).registerDoctorCommand(program);
    (await import("./cli/health.ts")).registerHealthCommand(program);
    (await import("./cli/migration/commands.ts")).registerMigrationCommands(program);
    (await import("./cli/nodes.ts")).registerNodesCommand(program);
    (await import("./cli/objects.ts")).registerObjectsCommand(program);
    (await import("./cli/rules.ts")).registerRulesCommand(program);
    (await import("./cli/testing/run.ts")).registerRunCommand(program);
    (await import("./cli/tls.ts")).registerTlsCommand(program);
    (await import("./cli/workflow.ts")).registerWorkflowCommand(program);
  }
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
    } else {
      printNote(explain(error));
      process.exitCode = 1;
    }
  }
}
