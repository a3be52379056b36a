import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { SupervisedProcess } from "./supervised-process.ts";

/** Ends well after one signal, and at once with code 1 after a second one, as `serve` does. */
const program = `
  let signals = 0;
  process.on("SIGTERM", () => {
    if (++signals > 1) process.exit(1);
    process.send({ is: "alive" });
    setTimeout(() => process.exit(0), 300);
  });
  setInterval(() => {}, 1000);
  process.send({ is: "ready" });
`;

it("a process that is stopped twice gets one signal, and keeps its time to end", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  const file = join(folder, "program.mjs");
  writeFileSync(file, program);
  const before = process.argv;
  process.argv = [process.execPath, file];
  onTestFinished(() => {
    process.argv = before;
    rmSync(folder, { recursive: true });
  });
  const supervised = {
    role: "edge",
    id: 1,
    folder,
    supervisorPid: process.pid,
    serving: 0,
    addresses: {},
  } as const;
  const { promise: signalled, resolve } = Promise.withResolvers<void>();
  const child = new SupervisedProcess(supervised, [], ({ is }) => {
    if (is === "alive") resolve();
  });
  expect(await child.ready).toBe(true);
  const first = child.stop(20_000);
  await signalled;
  expect(await Promise.all([first, child.stop(20_000)])).toEqual([0, 0]);
});
