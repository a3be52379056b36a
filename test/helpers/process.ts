import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Ready } from "../../src/ready.ts";

export interface ServerProcess {
  process: ChildProcess;
  ready: Ready;
  stdout(): string;
  stderr(): string;
  /** Resolves with the exit code, or the signal's name. */
  exited: Promise<number | NodeJS.Signals>;
}

export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), "selvedge-test-"));

/** All that this test file has started. */
export const servers: Pick<ServerProcess, "stderr">[] = [];

/** `selvedge serve` as a process of its own, when it is ready. The command in `enter` runs it. */
export async function serve(
  args: readonly string[],
  environment: Record<string, string> = {},
  enter: readonly string[] = [],
  program = "bin/selvedge.js",
): Promise<ServerProcess> {
  const readyFile = join(temporaryFolder(), "ready.json");
  const listeners = [
    "--api-listen",
    "127.0.0.1:0",
    "--edge-listen",
    "127.0.0.1:0",
    "--dns-listen",
    "127.0.0.1:0",
    "--ready-file",
    readyFile,
  ];
  const command = [...enter, process.execPath, program, "serve", ...listeners, ...args];
  const child = spawn(command[0]!, command.slice(1), {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  servers.push({ stderr: () => stderr });
  const exited = new Promise<number | NodeJS.Signals>((resolve) =>
    child.on("exit", (code, signal) => resolve(signal ?? code ?? 0)),
  );
  const startedMs = performance.now();
  // The pipe may deliver the last lines after the ready file is there.
  while (!existsSync(readyFile) || !stdout.includes("API token")) {
    if (child.exitCode !== null) throw new Error(`serve ended: ${stderr}`);
    if (performance.now() - startedMs > 120_000) throw new Error("serve was not ready after two minutes");
    await delay(20);
  }
  const ready = JSON.parse(readFileSync(readyFile, "utf8")) as Ready;
  return { process: child, ready, stdout: () => stdout, stderr: () => stderr, exited };
}
