import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { Option, type Command } from "commander";
import { printNote } from "../output.ts";
import { startSelvedge, type Selvedge, type StartOptions } from "../../testkit/start-selvedge.ts";

interface RunOptions extends Pick<
  StartOptions,
  "seed" | "now" | "clock" | "state" | "onUnknown" | "outbound"
> {
  har: string;
}

/** `run`: starts a platform for a command, such as the tests of a project, and ends with its exit code. */
export function registerRunCommand(program: Command): void {
  program
    .command("run")
    .description("start an ephemeral platform for a command, and end with the command's exit code")
    .argument("<command...>", "the command, after --; its environment has the variables of the clients")
    .option("--seed <text>", "a text that determines all ids")
    .option("--now <time>", "the time at the start")
    .addOption(new Option("--clock <mode>", "how the time passes").choices(["real", "frozen", "skip"]))
    .option(
      "--state <file>",
      "the state to begin with: one that a test has saved, a file of import, or a seed",
    )
    .addOption(new Option("--on-unknown <what>", "what a call of no operation does").choices(["fail", "404"]))
    .addOption(
      new Option("--outbound <reach>", "the reach beyond this machine").choices(["block", "refuse", "allow"]),
    )
    .option("--har <file>", "the file for the calls, written when the command fails", "selvedge-calls.har")
    .action(async ([command, ...rest]: string[], { har, ...options }: RunOptions) => {
      const platform = await startSelvedge(options);
      let code = 1;
      try {
        code = await exitOf(command!, rest, platform);
        if (code !== 0) writeFileSync(har, JSON.stringify(await platform.calls.har()), { mode: 0o600 });
        if (code !== 0) printNote(`selvedge: seed ${platform.seed}; the calls are in ${har}`);
      } finally {
        await platform.close();
      }
      process.exitCode = code;
    });
}

/** The exit code of the command; 128 and its number for a signal, as shells have it. */
async function exitOf(command: string, rest: readonly string[], { env }: Selvedge): Promise<number> {
  const child = spawn(command, rest, { env: { ...process.env, ...env }, stdio: "inherit" });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const passOn = (signal: NodeJS.Signals): boolean => child.kill(signal);
  for (const signal of signals) process.on(signal, passOn);
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", ({ message }) => reject(new Error(`the command could not be started: ${message}`)));
      child.once("exit", (code, signal) =>
        resolve(signal === null ? code! : 128 + constants.signals[signal]),
      );
    });
  } finally {
    for (const signal of signals) process.removeListener(signal, passOn);
  }
}
