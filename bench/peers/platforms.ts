import { loadConfig } from "../../src/platform/config/config.ts";
import { createLogger } from "../../src/platform/observability/logger.ts";
import type { Ready } from "../../src/ready.ts";
import { startServer } from "../../src/server.ts";
import { benchToken, type PlatformOptions } from "../lib/child.ts";

/** One whole platform for each argument, which is its options as JSON. Prints their addresses. */
const ready: Ready[] = [];
for (const argument of process.argv.slice(2)) {
  const { withoutAudit = false, ...settings } = JSON.parse(argument) as PlatformOptions;
  const listen = { apiListen: "127.0.0.1:0", edgeListen: "127.0.0.1:0", dnsListen: "127.0.0.1:0" };
  const { config } = loadConfig(
    { ...listen, apiToken: benchToken, apiRateLimit: 0, ...settings },
    {},
    undefined,
  );
  ready.push((await startServer(config, createLogger("error"), { withoutAudit })).ready);
}
console.log(JSON.stringify(ready));
