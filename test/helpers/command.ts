import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, vi } from "vitest";

export interface CommandLine {
  /** Each test has a fresh one. */
  readonly folder: string;
  /** Runs the program in this process, and answers with what it has written. */
  run(...args: string[]): Promise<string>;
}

/** A program with the commands that are registered, for the tests of a file. */
export function commandLine(register: (program: Command) => void): CommandLine {
  let folder = "";
  let out = "";
  const keep = (text: string | Uint8Array): boolean => {
    out += String(text);
    return true;
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "selvedge-command-"));
    vi.spyOn(process.stdout, "write").mockImplementation(keep);
    vi.spyOn(process.stderr, "write").mockImplementation(keep);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
    process.exitCode = undefined;
  });
  return {
    get folder() {
      return folder;
    },
    async run(...args) {
      out = "";
      const program = new Command("selvedge").exitOverride();
      register(program);
      await program.parseAsync(["node", "selvedge", ...args]);
      return out;
    },
  };
}
