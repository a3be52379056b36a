import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/platform/config/config.ts";
import { createLogger } from "../../src/platform/observability/logger.ts";
import { startServer } from "../../src/server.ts";
import { benchToken } from "../lib/child.ts";

/** The whole platform with the audit log, or without it if the argument is "off". Prints the port of its API. */
const { config } = loadConfig(
  {
    dataDir: mkdtempSync(join(tmpdir(), "selvedge-bench-")),
    apiListen: "127.0.0.1:0",
    edgeListen: "127.0.0.1:0",
    dnsListen: "127.0.0.1:0",
    apiToken: benchToken,
    apiRateLimit: 0,
  },
  {},
  undefined,
);
const server = await startServer(config, createLogger("error"), { withoutAudit: process.argv[2] === "off" });
console.log(new URL(server.ready.api).port);
