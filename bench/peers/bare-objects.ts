import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { workerdPath } from "../../src/sandbox/process/launch.ts";

/*
 * The barest node:http proxy before workerd with a script and its class of Durable Objects in a static configuration, and
 * storage on disk. The argument is the script. Prints its port.
 */
const source = process.argv[2]!;
const folder = mkdtempSync(join(tmpdir(), "bare-objects-"));
mkdirSync(join(folder, "objects"));
writeFileSync(join(folder, "main.js"), source);
writeFileSync(
  join(folder, "config.capnp"),
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "main.js", esModule = embed "main.js")],
      compatibilityDate = "2026-11-01",
      durableObjectNamespaces = [(className = "Room", uniqueKey = "room", enableSql = true)],
      durableObjectStorage = (localDisk = "objects"),
      bindings = [(name = "ROOMS", durableObjectNamespace = "Room")])),
    (name = "objects", disk = (path = "objects", writable = true)),
  ],
  sockets = [(name = "main", address = "unix:cell.sock", service = "main", http = ())]);
`,
);
const workerd = spawn(workerdPath(), ["serve", "--experimental", "config.capnp"], {
  cwd: folder,
  stdio: ["ignore", "ignore", "inherit"],
});
const pool = new Pool("http://cell", { socketPath: join(folder, "cell.sock"), connections: 512 });
const server = createServer((request, response) => {
  pool.dispatch(
    { method: request.method as "GET", path: request.url!, headers: request.rawHeaders, body: null },
    {
      onRequestStart(controller) {
        response.on("drain", () => controller.resume());
        response.on("close", () => controller.abort(new Error("closed")));
      },
      onResponseStart(controller, status) {
        response.writeHead(status, (controller.rawHeaders as Buffer[]).map(String));
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause();
      },
      onResponseEnd: () => void response.end(),
      onResponseError: () => void response.destroy(),
    },
  );
});
for (;;) {
  try {
    await (await pool.request({ method: "GET", path: "/fetch/first" })).body.dump();
    break;
  } catch {
    await delay(20);
  }
}
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => {
  workerd.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
