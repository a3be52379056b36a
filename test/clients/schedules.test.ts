import { afterAll, beforeAll, expect, it } from "vitest";
import { BadRequestError, NotFoundError, type Cloudflare } from "cloudflare";
import { operations } from "../../src/capabilities.ts";
import { scheduleOperations } from "../../src/products/schedules/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client sets a script's schedules. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;

beforeAll(async () => {
  server = await startTestServer();
  ({ client, called } = recordingClient(server, operations));
  ({ account_id } = server.ready);
});
afterAll(() => server.close(1000));

const upload = async (name: string): Promise<unknown> =>
  client.workers.scripts.update(name, {
    account_id,
    metadata: { main_module: "main.js" },
    files: [new File(["export default { scheduled() {} }"], "main.js", { type: "text/javascript+module" })],
  });

it("replaces, lists and removes schedules", async () => {
  const { schedules } = client.workers.scripts;
  await upload("timed");
  const body = [{ cron: "*/5 * * * *" }, { cron: "0 17 * * sun" }];
  const made = await schedules.update("timed", { account_id, body });
  expect(made.schedules.map(({ cron }) => cron).toSorted()).toEqual(["*/5 * * * *", "0 17 * * sun"]);
  expect(await schedules.get("timed", { account_id })).toEqual(made);
  // Clients can send back the fields that they read.
  expect(await schedules.update("timed", { account_id, body: made.schedules })).toEqual(made);
  expect(await schedules.update("timed", { account_id, body: [] })).toEqual({ schedules: [] });
});

it("rejects invalid schedules", async () => {
  const { schedules } = client.workers.scripts;
  await upload("refused");
  const put = async (...crons: string[]): Promise<unknown> =>
    schedules.update("refused", { account_id, body: crons.map((cron) => ({ cron })) });
  await expect(put("* * * * *", "@daily")).rejects.toMatchObject({
    errors: [{ code: 10100, source: { pointer: "/body/1/cron" } }],
  });
  await expect(put("* * * * *", "* * * * *")).rejects.toThrow(BadRequestError);
  expect(await schedules.get("refused", { account_id })).toEqual({ schedules: [] });
  await expect(schedules.get("nobody", { account_id })).rejects.toThrow(NotFoundError);
});

it("deletes schedules with their script", async () => {
  const { schedules } = client.workers.scripts;
  await upload("gone");
  await schedules.update("gone", { account_id, body: [{ cron: "0 0 1 1 *" }] });
  await client.workers.scripts.delete("gone", { account_id });
  await upload("gone");
  expect(await schedules.get("gone", { account_id })).toEqual({ schedules: [] });
});

it("every operation has been called", () => {
  expect(scheduleOperations.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
