import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import { createLogger } from "../../platform/observability/logger.ts";
import { openStorage, type Storage } from "../../platform/storage/storage.ts";
import { readCron } from "./cron.ts";
import { CronScheduler, type ScheduledRun } from "./scheduler.ts";
import { minuteMs, Schedules } from "./schedules.ts";

const utc = (text: string): number => Date.parse(`${text}Z`);
const minutes = async (expression: string, from: string, count: number): Promise<unknown> => {
  const cron = await readCron(expression);
  if (typeof cron === "string") return cron;
  const found: number[] = [];
  while (found.length < count) found.push(cron.next(found.at(-1) ?? utc(from))!);
  return found.map((ms) => new Date(ms).toISOString().slice(0, 16));
};

// Saturday.
const day = "2026-11-21T08:15:30";
it.each([
  ["*/5 * * * *", ["2026-11-21T08:20", "2026-11-21T08:25"]],
  ["5/20 * * * *", ["2026-11-21T08:25", "2026-11-21T08:45"]],
  ["0 17 * * 1", ["2026-11-22T17:00", "2026-11-29T17:00"]],
  ["0 17 * * sun", ["2026-11-22T17:00", "2026-11-29T17:00"]],
  ["10 7 * * 2-6", ["2026-11-23T07:10", "2026-11-24T07:10"]],
  ["0 18 * * 6L", ["2026-11-27T18:00", "2026-12-25T18:00"]],
  ["59 23 LW * *", ["2026-11-30T23:59", "2026-12-31T23:59"]],
  ["0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]],
  // The day of the month or the day of the week.
  ["0 0 1 * 2", ["2026-11-23T00:00", "2026-11-30T00:00"]],
])("%s is at %j", async (expression, expected) => {
  expect(await minutes(expression, day, 2)).toEqual(expected);
});

it.each([
  ["* * * *", /expected 5 fields but received 4/],
  ["* * * * * *", /expected 5 fields but received 6/],
  ["@daily", /expected 5 fields/],
  ["61 * * * *", /the field "61" is not valid for minutes/],
  ["0 0 * * 0", /1 \(Sunday\) to 7/],
  ["0 0 * * 2-8", /1 \(Sunday\) to 7/],
  ["0 0 31 2 *", /no such time/],
  ["0 0 ? * $", /"\?" is invalid/],
  ["*/0 * * * *", /"\*\/0" is not valid for minutes/],
  [`${"1,".repeat(200)}1 * * * *`, /at most 256 characters/],
])("%s is refused", async (expression, message) => {
  expect(await minutes(expression, day, 1)).toMatch(message);
});

it.each([
  "* * * * *",
  "*/7 3,5-9/2,20/3 * * *",
  "/30 */5 1,15 * *",
  "05,1-3 00 * * 2L",
  "59 23 29 2 *",
  "1/1 * LW * *",
])("the minutes of %s are counted correctly", async (expression) => {
  const cron = await readCron(expression);
  if (typeof cron === "string") throw new Error(cron);
  for (const [from, to] of [
    ["2026-11-21T08:15:30", "2026-11-21T08:15:40"],
    ["2026-11-21T08:15:30", "2026-11-24T03:29"],
    ["2027-02-27T23:58", "2028-03-01T00:00"],
  ] as const) {
    let [count, lastMs] = [0, utc(from)];
    for (let at = cron.next(lastMs)!; at < utc(to) && count < 5000; at = cron.next(at)!)
      [count, lastMs] = [count + 1, at];
    if (count < 5000) expect(cron.between(utc(from), utc(to))).toEqual({ count, lastMs });
    else expect(cron.between(utc(from), utc(to)).count).toBeGreaterThan(5000);
  }
});

describeStorage("schedules", (open) => {
  let storage: Storage;
  let schedules: Schedules;
  let accountId: string;
  const anyScript = { get: () => ({}) as never, onDelete: () => {}, lock: async () => {} };

  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    ({ id: accountId } = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id }));
    schedules = new Schedules(storage, anyScript);
  });
  afterEach(() => storage.close());

  let base: number;
  const save = async (...crons: string[]): Promise<void> => {
    const [first] = await schedules.replace(accountId, "worker", crons);
    base = Math.floor(first!.createdOn / minuteMs);
  };
  /** Minutes after the one in which the schedules were saved. */
  const later = (count: number): number => (base + count) * minuteMs;
  async function tick(nowMs: number, node = schedules): Promise<ScheduledRun[]> {
    const runs: ScheduledRun[] = [];
    const scheduler = new CronScheduler(node, async (run) => void runs.push(run), createLogger("error"));
    await scheduler.tick(nowMs);
    await scheduler.stop();
    return runs;
  }

  it("runs each minute once, with its own time", async () => {
    await save("* * * * *");
    expect(await tick(later(0) + 59_999)).toEqual([]);
    const first = { accountId, scriptName: "worker", cron: "* * * * *", scheduledTimeMs: later(1) };
    expect(await tick(later(1) + 20)).toEqual([first]);
    expect(await tick(later(1) + 59_999)).toEqual([]);
    expect(await tick(later(2))).toEqual([{ ...first, scheduledTimeMs: later(2) }]);
    expect(schedules.list(accountId, "worker")).toMatchObject([{ missedRuns: 0, lastMissedOn: null }]);
  });

  it("counts missed runs, and does not run them later", async () => {
    await save("* * * * *");
    expect(await tick(later(5) + 100)).toMatchObject([{ scheduledTimeMs: later(5) }]);
    const [schedule] = schedules.list(accountId, "worker");
    expect(schedule).toMatchObject({ missedRuns: 4, lastMissedOn: later(4), lastRunOn: later(5) });
  });

  it("reports a missed run before the next one is due", async () => {
    const dueOn = (Math.floor(Date.now() / minuteMs) + 30) * minuteMs;
    const at = new Date(dueOn);
    await save(`${at.getUTCMinutes()} ${at.getUTCHours()} * * *`);
    expect(await tick(dueOn - minuteMs)).toEqual([]);
    expect(await tick(dueOn + minuteMs)).toEqual([]);
    expect(schedules.list(accountId, "worker")).toMatchObject([
      { missedRuns: 1, lastMissedOn: dueOn, nextOn: dueOn + 24 * 60 * minuteMs },
    ]);
  });

  it("of several nodes, one runs a minute", async () => {
    const crons = Array.from({ length: 20 }, (_, i) => `*/${i + 1} * * * *`);
    await save(...crons);
    const nodes = [schedules, new Schedules(storage, anyScript), new Schedules(storage, anyScript)];
    await Promise.all(nodes.map(async (node) => node.load()));
    for (let minute = 1; minute <= 10; minute++) {
      const runs = await Promise.all(nodes.map(async (node) => tick(later(minute), node)));
      const due = crons.filter((_, i) => new Date(later(minute)).getUTCMinutes() % (i + 1) === 0);
      expect(new Set(runs.flat().map(({ cron }) => cron))).toEqual(new Set(due));
      expect(runs.flat()).toHaveLength(due.length);
    }
    await schedules.load();
    expect(schedules.list(accountId, "worker").filter(({ missedRuns }) => missedRuns > 0)).toEqual([]);
  });

  it("keeps unchanged schedules, adds and removes others", async () => {
    await schedules.replace(accountId, "worker", ["0 * * * *", "5 * * * *"]);
    const [kept] = schedules.list(accountId, "worker");
    await schedules.replace(accountId, "worker", ["9 * * * *", kept!.cron]);
    const after = schedules.list(accountId, "worker");
    expect(after.map(({ cron }) => cron).toSorted()).toEqual([kept!.cron, "9 * * * *"].toSorted());
    expect(after.find(({ cron }) => cron === kept!.cron)).toMatchObject({ createdOn: kept!.createdOn });
    await schedules.replace(accountId, "worker", []);
    expect(schedules.list(accountId, "worker")).toEqual([]);
  });
});

it("runs a minute when the database recovers within it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
  vi.setSystemTime(utc("2026-11-21T08:14:59"));
  let isAway = false;
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(() => storage.close());
  const schedules = new Schedules(storage, {
    get: () => ({}) as never,
    onDelete: () => {},
    lock: async () => {},
  });
  const asked = vi.spyOn(schedules, "claimDue").mockImplementation(async () => {
    if (isAway) throw new Error("the database is away");
    return [];
  });
  const scheduler = new CronScheduler(schedules, async () => {}, createLogger("fatal"));
  await scheduler.start();
  expect(asked).toHaveBeenCalledTimes(1);
  isAway = true;
  await vi.advanceTimersByTimeAsync(3500); // at :00, :01 and :02
  expect(asked).toHaveBeenCalledTimes(4);
  isAway = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveBeenCalledTimes(5);
  await vi.advanceTimersByTimeAsync(56_000); // nothing more in this minute
  expect(asked).toHaveBeenCalledTimes(5);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveBeenCalledTimes(6);
  await scheduler.stop();
});
