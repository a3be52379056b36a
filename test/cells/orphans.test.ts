import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { KilledBoot } from "./orphans.ts";

const stateOf = (pid: number): boolean => existsSync(`/proc/${pid}`);

it("the guard ends what the kernel does not, also processes that are made meanwhile, and nothing else", async () => {
  const guard = join(import.meta.dirname, "../../src/sandbox/process/guard.ts");
  const program = `
    const { spawn } = await import("node:child_process");
    const { guardToken } = await import(${JSON.stringify(guard)});
    const start = (script, ...args) =>
      spawn("/bin/sh", ["-c", script, ...args], { detached: true, stdio: "ignore" }).pid;
    const waits = "sleep 60; true";
    const forks = 'while :; do sh -c "sleep 60; true" "$0" & sleep 0.01; done';
    console.log(JSON.stringify([start(waits, guardToken()), start(forks, guardToken()), start(waits)]));
    setInterval(() => {}, 60_000);`;
  const server = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(server.stdout, "data")) as [Buffer];
  const pids = JSON.parse(line.toString()) as number[];
  await vi.waitFor(() => expect(pids.map(stateOf)).toEqual([true, true, true]));
  server.kill("SIGKILL");
  await vi.waitFor(() => expect(pids.map(stateOf)).toEqual([false, false, true]));
  process.kill(pids[2]!, "SIGKILL");
});

it("no process of a cell outlives a server that is killed at any moment of its start", async () => {
  for (let moment = 0; moment < 6; moment++) {
    const boot = new KilledBoot();
    await boot.begun();
    await delay(moment * 16); // the moment is what the test varies
    await boot.kill();
    expect(await boot.left(), `after ${moment * 16} ms`).toEqual([]);
  }
});
