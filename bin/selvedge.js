#!/usr/bin/env node
// The program runs under Node 26.4 or newer. In a clone, an older Node starts it under the Node among the dependencies.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module, { createRequire } from "node:module";
import v8 from "node:v8";

// Files of the program are for its user only.
process.umask(0o077);

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > 26 || (major === 26 && minor >= 4)) {
  // Bodies use buffers outside V8's heap. By default every 64 MB of them trigger a full collection. With this flag
  // they count against the heap limit instead, which halves the CPU time of a large body (npm run bench -- edge).
  v8.setFlagsFromString("--external-memory-accounted-in-global-limit");
  // V8 shrinks the young generation when idle. This flag lets it grow back at once. It also grows to its full 32 MB
  // before the program loads, which then starts without a full collection.
  v8.setFlagsFromString("--semi-space-growth-factor=32");
  module.enableCompileCache?.();
  const isClone = existsSync(new URL("../src/main.ts", import.meta.url));
  const { main } = await import(isClone ? "../src/main.ts" : "../dist/main.js");
  await main(process.argv);
} else {
  const node = newerNode();
  if (node === undefined) {
    console.error(
      `Selvedge needs Node 26.4 or newer, and this is Node ${process.versions.node}. Install a newer Node, for example with ` +
        "`npx --package=node@26 --package=selvedge selvedge`.",
    );
    process.exit(1);
  }
  // The system closes the channel when this process ends or is killed, and the child then stops.
  // Sockets of a service manager are the descriptors from 3 on.
  const isPassed = Number(process.env.LISTEN_PID) === process.pid;
  const passed = Array.from(
    { length: isPassed ? Number(process.env.LISTEN_FDS) : 0 },
    (_, index) => 3 + index,
  );
  const child = spawn(node, [import.meta.filename ?? process.argv[1], ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", ...passed, "ipc"],
  });
  process.once("disconnect", () => child.kill()); // the program that started this process has ended
  process.channel?.unref();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2"];
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => {
    for (const each of signals) process.removeAllListeners(each);
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code ?? 1;
  });
}

function newerNode() {
  try {
    return createRequire(import.meta.url).resolve("node/bin/node");
  } catch {
    return undefined;
  }
}
