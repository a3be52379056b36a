import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "../../test/helpers/free-port.ts";

/* `wrangler dev` with a script that has a D1 database. The script is the argument. Prints its port when it listens. */
const folder = mkdtempSync(join(tmpdir(), "wrangler-dev-d1-"));
writeFileSync(join(folder, "index.js"), process.argv[2]!);
const config = {
  name: "bench",
  main: "index.js",
  compatibility_date: "2026-11-01",
  d1_databases: [{ binding: "DB", database_name: "bench", database_id: "bench" }],
};
writeFileSync(join(folder, "wrangler.json"), JSON.stringify(config));
const [port, inspector] = [await freePort(), await freePort()];
const ports = ["--port", String(port), "--inspector-port", String(inspector)];
const child = spawn(process.execPath, [resolve("node_modules/wrangler/bin/wrangler.js"), "dev", ...ports], {
  cwd: folder,
  env: {
    PATH: process.env["PATH"] ?? "",
    HOME: folder,
    CI: "1",
    NO_COLOR: "1",
    WRANGLER_SEND_METRICS: "false",
  },
  stdio: ["ignore", "pipe", "pipe"],
});
let output = "";
const isReady = new Promise<void>((done) => {
  const read = (chunk: Buffer): void => {
    output += chunk.toString();
    if (/Ready on/.test(output)) done();
  };
  child.stdout.on("data", read);
  child.stderr.on("data", read);
});
child.once("exit", () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
process.once("SIGTERM", () => child.kill("SIGTERM"));
await isReady;
process.stdout.write(String(port));
