import type { Command } from "commander";
import { parseAddress } from "../platform/config/config.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { print } from "./output.ts";

const timeoutMs = 5000;

/** `health`: asks a running node whether it is ready, for health checks of containers. */
export function registerHealthCommand(program: Command): void {
  const health = program
    .command("health")
    .description("ask the node of this configuration whether it is ready; exits with 1 if it is not");
  addConfigOptions(health)
    .option("--live", "ask only whether the process answers")
    .action(async (options: Record<string, unknown>) => {
      const { healthListen, apiListen } = configOf(options).config;
      const { host, port } = parseAddress(healthListen ?? apiListen)!; // checked when the configuration was read
      const url = `http://${reachable(host)}:${port}${options["live"] === true ? "/healthz" : "/readyz"}`;
      try {
        const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
        print(await answer.text());
        if (!answer.ok) process.exitCode = 1;
      } catch (cause) {
        throw new Error(`no answer from ${url}`, { cause });
      }
    });
}

/** The address of this machine at which a listener on all addresses can be reached. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
