#!/usr/bin/env node
// Runs under any Node from 20 on. The program itself needs a newer one, which is among its own dependencies.
import { spawn } from "node:child_process";
import module, { createRequire } from "node:module";
import v8 from "node:v8";

const [major = 0] = process.versions.node.split(".").map(Number);
if (major >= 26) {
  // Bodies pass through in buffers outside V8's heap. By default every 64 MB of them start a full collection; with
  // this they count against the heap's own limit. It halves the CPU time of a large body (npm run bench -- edge).
  v8.setFlagsFromString("--external-memory-accounted-in-global-limit");
  // When nothing happens V8 makes the space for new objects small. With this it is large again after a few collections of it.
  v8.setFlagsFromString("--semi-space-growth-factor=16");
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
