import { describe } from "vitest";
import { namespacesMissing, type Installed } from "./packages.ts";

const hindrance = namespacesMissing();

/**
 * Declares tests of a program. If the program cannot be installed or run, they are skipped with the reason in
 * the title.
 */
export function describeProgram(name: string, program: Installed, tests: (folder: string) => void): void {
  const why = "missing" in program ? program.missing : hindrance;
  if (why !== undefined) describe.skip(`${name} (skipped: ${why})`, () => tests(""));
  else describe(name, () => tests((program as { folder: string }).folder));
}
