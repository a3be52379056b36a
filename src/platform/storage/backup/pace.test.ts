import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { Pace } from "./pace.ts";

const folder = mkdtempSync(join(tmpdir(), "selvedge-pace-"));
const log = join(folder, "selvedge.db-wal");
afterAll(() => rmSync(folder, { recursive: true }));

/** Whether the work waits for a timer, which ends in another turn of the event loop. */
async function rests(pace: Pace): Promise<boolean> {
  let isOver = false;
  const rested = pace.rest().then(() => (isOver = true));
  for (let step = 0; step < 10; step++) await Promise.resolve();
  const isWaiting = !isOver;
  await rested;
  return isWaiting;
}

it("rests while a node writes, and until a second later", async () => {
  const pace = new Pace(log, () => 0);
  expect(await rests(pace)).toBe(false); // no log
  writeFileSync(log, "a commit");
  for (const [agoMs, isBusy] of [
    [0, true],
    [2000, false],
  ] as const) {
    const writtenOn = new Date(Date.now() - agoMs);
    utimesSync(log, writtenOn, writtenOn);
    expect(await rests(pace)).toBe(isBusy);
  }
});

it("rests while it has to wait for a processor", async () => {
  let [waitedMs, nowMs] = [0, 0];
  const pace = new Pace(
    undefined,
    () => waitedMs,
    () => nowMs,
  );
  for (const [laterMs, moreMs, isBusy] of [
    [110, 20, false],
    [110, 100, true],
    [1000, 0, false],
  ] as const) {
    [nowMs, waitedMs] = [nowMs + laterMs, waitedMs + moreMs];
    expect(await rests(pace)).toBe(isBusy);
  }
});
