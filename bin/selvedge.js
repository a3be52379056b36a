#!/usr/bin/env node
// Runs under any Node from 20 on. The program itself needs a newer one, which is among its own dependencies.
import { spawn } from "node:child_process";
import module, { createRequire } from "node:module";

const [major = 0] = process.versions.node.split(".").map(Number);
if (major >= 26) {
  module.enableCompileCache?.();
  const { main } = await import("../src/main.ts");
  await main(process.argv);
} else {
  const node = createRequire(import.meta.url).resolve("node/bin/node");
  const child = spawn(node, [import.meta.filename ?? process.argv[1], ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => (signal ? process.kill(process.pid, signal) : process.exit(code ?? 1)));
}
