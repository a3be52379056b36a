import { describe } from "vitest";
import { namespacesMissing, type Installed } from "./packages.ts";

const hindrance = namespacesMissing();

/**
 * Declares tests of programs, which use the programs' folders. Where one of them cannot be installed or run, the title says
 * why, and the tests do not run.
 */
export function describePrograms(
  name: string,
  programs: readonly Installed[],
  tests: (...folders: string[]) => void,
  { inNamespaces = false } = {},
): void {
  const missing = programs.flatMap((each) => ("missing" in each ? [each.missing] : []));
  if (inNamespaces && hindrance !== undefined) missing.push(hindrance);
  const title = missing.length === 0 ? name : `${name} (cannot be tried here: ${missing.join("; ")})`;
  describe.skipIf(missing.length > 0)(title, () =>
    tests(...programs.map((each) => ("folder" in each ? each.folder : ""))),
  );
}

/** Declares tests of a program that runs in namespaces of its own, with its own hosts and network. */
export const describeProgram = (name: string, program: Installed, tests: (folder: string) => void): void =>
  describePrograms(name, [program], (folder) => tests(folder), { inNamespaces: true });
