import type { Command } from "commander";
import { describeConfig } from "../platform/config/config.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { print as printText } from "./output.ts";

/** `config print`: every setting with its value and where the value comes from. Secrets are masked. */
export function registerConfigCommand(program: Command): void {
  const config = program.command("config").description("show the effective configuration");
  const print = config.command("print").description("print every setting with the origin of its value");
  addConfigOptions(print)
    .option("--json", "print JSON")
    .action((options: Record<string, unknown>) => {
      const rows = describeConfig(configOf(options));
      if (options["json"] === true) {
        const entries = rows.map(({ name, value, origin }) => [name, { value, origin }]);
        printText(JSON.stringify(Object.fromEntries(entries), null, 2));
        return;
      }
      const width = Math.max(...rows.map((row) => row.name.length));
      for (const { name, value, origin } of rows) {
        printText(
          `${name.padEnd(width)}  ${origin.padEnd(11)}  ${value === null ? "-" : JSON.stringify(value)}`,
        );
      }
    });
  print.exitOverride();
}
