import { openConsole } from "../dashboard/browser.ts";
import { makeLong, openLong } from "../dashboard/long-workflow.ts";
import { jumpsOf } from "../dashboard/scroll.ts";

/**
 * Scrolls the timeline of a workflow of 10,000 steps in a browser, and finds a step by its name. Fails if a frame shows
 * other rows than those of its place. `node test/proofs/console-long-workflow.ts`
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const timed = async (what: string, work: () => Promise<unknown>): Promise<void> => {
  const start = performance.now();
  await work();
  say(`${what}: ${Math.round(performance.now() - start)} ms`);
};

await using console = await openConsole();
await makeLong(console);
const page = await openLong(console, 9998);
await timed("first rows, after a reload", async () => {
  await page.reload();
  await page.getByRole("row", { name: "row 1 of 10,000", exact: true }).waitFor();
});
for (const steps of [
  { frames: 200, stepPx: 240 },
  { frames: 50, stepPx: 7000 },
]) {
  const jumps = await jumpsOf(page, steps);
  say(`${steps.frames} frames of ${steps.stepPx} px: ${JSON.stringify(jumps)}`);
  if (JSON.stringify(jumps) !== "[]") process.exitCode = 1;
}
await timed("a step by its name", async () => {
  await page.getByLabel("Find steps by name").fill("page 9876");
  await page.getByRole("row", { name: "row 1 of 1", exact: true }).waitFor();
});
