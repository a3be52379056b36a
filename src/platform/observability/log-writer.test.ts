import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";

/** A process that writes 20,000 lines to standard error and exits at once. */
const program = `
import { LogWriter } from "${import.meta.dirname}/log-writer.ts";
const output = new LogWriter(2);
for (let n = 0; n < 20_000; n++) output.write(String(n) + "\\n");
process.exit(0);`;
const start = () =>
  spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "ignore", "pipe"] });

it("an exiting process writes every line, in order", async () => {
  const child = start();
  const lines = await text(child.stderr);
  expect(lines).toBe(Array.from({ length: 20_000 }, (_, n) => `${n}\n`).join(""));
});

it("a process whose reader has gone exits all the same", async () => {
  const child = start();
  child.stderr.destroy();
  expect(await once(child, "exit")).toEqual([0, null]);
});
