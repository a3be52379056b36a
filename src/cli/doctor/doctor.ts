import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { addConfigOptions, configOf } from "../config-options.ts";
import { diagnose, type Finding } from "./diagnosis.ts";
import { print } from "../output.ts";

const marks: Record<Finding["state"], string> = { ok: "ok", advice: "advice", fault: "FAULT" };

/**
 * `doctor`: checks whether `serve` would work here, and which protections isolate customers' code from this
 * machine.
 */
export function registerDoctorCommand(program: Command): void {
  const doctor = program
    .command("doctor")
    .description("check the requirements of serve: versions, protections, ports, folders, database");
  addConfigOptions(doctor)
    .option("--json", "print JSON")
    .option("--report <file>", "write a report for others into a file, without secrets; - is standard output")
    .option("--log <file>", "with --report: include the last errors of this log of serve")
    .action(async (options: Record<string, unknown>) => {
      const loaded = configOf(options);
      const { report, log } = options as { report?: string; log?: string };
      if (report !== undefined) {
        const { reportOf } = await import("./report.ts");
        const text = await reportOf(loaded, log);
        if (report === "-") print(text);
        else await writeFile(report, text, { mode: 0o600 });
        return;
      }
      const findings = await diagnose(loaded.config);
      if (findings.some(({ state }) => state === "fault")) process.exitCode = 1;
      const output = options["json"] === true ? JSON.stringify(findings, null, 2) : table(findings);
      print(output);
    });
}

function table(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length));
  const sections = Map.groupBy(findings, ({ area }) => area);
  return [...sections]
    .map(([area, own]) =>
      [
        area,
        ...own.map(
          ({ name, state, detail }) => `  ${marks[state].padEnd(7)} ${name.padEnd(width)}  ${detail}`,
        ),
      ].join("\n"),
    )
    .join("\n\n");
}
