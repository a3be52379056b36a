import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

/**
 * A workflow's schedules create an instance in each minute that they name. The clock stands still unless it
 * is advanced.
 */
const minute = Date.UTC(2026, 10, 1, 12, 30);
const cron = "*/10 12 * * *";
let hosting: WorkflowHosting;
let path: string;

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: minute - 30_000 });
  hosting = await startWorkflowHosting();
  await hosting.workflow("timed", "return event.schedule;");
  path = `/accounts/${hosting.account}/workflows/timed`;
});
afterAll(async () => {
  vi.useRealTimers();
  await hosting.close(1000);
});

const put = async (schedules?: object[]) =>
  hosting.call("PUT", path, { script_name: "timed", class_name: "Main", ...(schedules && { schedules }) });
const list = async (): Promise<{ id: string; trigger_source: string }[]> =>
  (await hosting.call("GET", hosting.instances("timed"))).body.result;

it("creates one instance per minute, which knows its schedule", async () => {
  expect((await put([{ cron }])).status).toBe(200);
  expect((await hosting.call("GET", path)).body.result.schedules).toEqual([
    { cron, next_instance: "2026-11-01T12:30:00.000Z" },
  ]);
  expect(await list()).toEqual([]);
  vi.setSystemTime(minute + 1000);
  await vi.waitUntil(async () => (await list()).length > 0, { interval: 50 });
  const [instance, ...others] = await list();
  expect(others).toEqual([]);
  expect(instance).toMatchObject({ id: `${cron}-${minute}`, trigger_source: "cron" });
  const id = encodeURIComponent(instance!.id);
  const schedule = { cron, scheduledTime: minute };
  expect(await hosting.end("timed", id)).toMatchObject({ status: "complete", output: schedule });
  expect(await hosting.details("timed", id)).toMatchObject({ trigger: { source: "cron" }, schedule });
});

it("creates none after the schedules were removed", async () => {
  expect((await put()).status).toBe(200);
  expect((await hosting.call("GET", path)).body.result.schedules).toEqual([]);
});

it.each([
  ["* * * *", "expected 5 fields"],
  ["61 * * * *", "Invalid cron expression"],
])("refuses %j", async (wrong, why) => {
  const { status, body } = await put([{ cron: "5 4 * * *" }, { cron: wrong }]);
  expect(status).toBe(400);
  expect(body.errors[0]).toMatchObject({
    message: expect.stringContaining(why),
    source: { pointer: "/body/schedules/1/cron" },
  });
});
