import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { workerdPath } from "../../src/sandbox/process/launch.ts";

/** workerd alone with one module, whose `fetch` goes directly to the origin. Prints its port. */
const [originPort, source] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "selvedge-bench-workerd-"));
writeFileSync(join(folder, "main.js"), source!);
writeFileSync(
  join(folder, "config.capnp"),
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "main.js", esModule = embed "main.js")],
      compatibilityDate = "2026-11-01",
      globalOutbound = "origin")),
    (name = "origin", external = (address = "127.0.0.1:${originPort}", http = ())),
  ],
  sockets = [(name = "main", address = "127.0.0.1:0", service = "main", http = ())]);
`,
);
const child = spawn(workerdPath(), ["serve", "--control-fd=3", "config.capnp"], {
  cwd: folder,
  stdio: ["ignore", "inherit", "inherit", "pipe"],
});
child.stdio[3]!.on("data", (chunk: Buffer) => {
  const port = /"port":\s*(\d+)/.exec(chunk.toString())?.[1];
  if (port !== undefined) process.stdout.write(port);
});
process.once("SIGTERM", () => {
  child.kill();
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
