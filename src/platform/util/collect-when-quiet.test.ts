import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** Runs in a separate, otherwise idle process: leaves garbage behind and waits for a requested collection. */
const program = (isQuiet: boolean): string => `
import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { collectWhenQuiet } from ${JSON.stringify(new URL("collect-when-quiet.ts", import.meta.url).href)};
let isCollected = false;
new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries())
    isCollected ||= (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0;
}).observe({ entryTypes: ["gc"] });
let left = Array.from({ length: 500_000 }, (_, i) => ({ name: "n" + i, at: [i] }));
left = undefined;
collectWhenQuiet(200);
const until = Date.now() + (${isQuiet} ? 20_000 : 2000);
while (!isCollected && Date.now() < until) {
  for (const end = Date.now() + 50; !${isQuiet} && Date.now() < end;);
  await delay(20);
}
console.log(isCollected);
`;
const run = async (isQuiet: boolean): Promise<string> =>
  (
    await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program(isQuiet)])
  ).stdout.trim();

it("collects the garbage of a burst once the process is idle", async () => {
  expect(await run(true)).toBe("true");
});

it("does not collect while the process is busy", async () => {
  expect(await run(false)).toBe("false");
});
