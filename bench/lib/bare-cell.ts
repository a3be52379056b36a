import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { workerdPath } from "../../src/sandbox/process/launch.ts";
import { bareProxy } from "./bare-proxy.ts";

/**
 * Starts workerd with the `config.capnp` in `folder`, listening at `cell.sock` there, and a bare proxy in front of it.
 * Prints the proxy's port once a request to `path` succeeds. SIGTERM ends both and removes the folder.
 */
export async function serveBareCell(
  folder: string,
  path: string,
  environment?: NodeJS.ProcessEnv,
): Promise<void> {
  const workerd = spawn(workerdPath(), ["serve", "--experimental", "config.capnp"], {
    cwd: folder,
    ...(environment === undefined ? {} : { env: environment }),
    stdio: ["ignore", "ignore", "inherit"],
  });
  const pool = new Pool("http://cell", { socketPath: join(folder, "cell.sock"), connections: 512 });
  const server = createServer(bareProxy(pool));
  process.once("SIGTERM", () => {
    workerd.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  });
  for (;;) {
    try {
      await (await pool.request({ method: "GET", path })).body.dump();
      break;
    } catch {
      await delay(20);
    }
  }
  server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
}
