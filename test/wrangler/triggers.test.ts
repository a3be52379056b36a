import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { Project, type RunningWrangler } from "./harness.ts";

/** Unmodified wrangler deploys cron triggers, and tails the scripts during their runs. */
let server: TestServer;
let project: Project;
const timeout = 300_000;
const config = { name: "worker", main: "index.js", compatibility_date: "2026-01-01" };

beforeAll(async () => {
  server = await startTestServer();
  project = new Project(server);
  project.write({
    "index.js": `export default {
      fetch(request) {
        const { pathname } = new URL(request.url);
        console.log("asked for", { pathname });
        if (pathname === "/throw") throw new RangeError("too far");
        return new Response("ok");
      },
      scheduled({ cron, scheduledTime }) { console.log("ran", cron, scheduledTime % 60000); },
    };`,
  });
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

const crons = (): string[] =>
  server.services.schedules.list(server.ready.account_id, "worker").map(({ cron }) => cron);

async function tail(...args: string[]): Promise<RunningWrangler> {
  const running = project.start(["tail", "worker", ...args]);
  const tails = server.services.tails;
  const { id: scriptId } = server.services.scripts.get({ accountId: server.ready.account_id }, "worker");
  await vi.waitFor(
    () => {
      const connected = tails
        .list({ accountId: "", scriptId })
        .filter(({ watcher }) => watcher !== undefined);
      expect(connected.length, running.output()).toBe(1);
    },
    { timeout: 60_000, interval: 50 },
  );
  return running;
}
async function prints(running: RunningWrangler, text: string | RegExp, timeoutMs = 30_000): Promise<void> {
  await vi.waitFor(() => expect(running.output()).toMatch(text), { timeout: timeoutMs, interval: 50 });
}
async function end(running: RunningWrangler): Promise<void> {
  running.interrupt();
  await running.ended;
}

it(
  "deploys crons, changes them, and removes them",
  async () => {
    project.write({ "wrangler.json": { ...config, triggers: { crons: ["*/5 * * * *", "0 17 * * sun"] } } });
    expect(await project.run(["deploy"])).toContain("schedule: 0 17 * * sun");
    expect(crons().toSorted()).toEqual(["*/5 * * * *", "0 17 * * sun"]);
    project.write({ "wrangler.json": { ...config, triggers: { crons: ["5 5 5 * *"] } } });
    await project.run(["triggers", "deploy"]);
    expect(crons()).toEqual(["5 5 5 * *"]);
    project.write({ "wrangler.json": { ...config, triggers: { crons: ["61 * * * *"] } } });
    expect(await project.attempt(["deploy"])).toMatchObject({
      code: 1,
      output: expect.stringContaining("61"),
    });
    project.write({ "wrangler.json": { ...config, triggers: { crons: [] } } });
    await project.run(["deploy"]);
    expect(crons()).toEqual([]);
  },
  timeout,
);

it(
  "tail: everything, or what fails, in both formats; a scheduled run too",
  async () => {
    project.write({ "wrangler.json": { ...config, triggers: { crons: ["* * * * *"] } } });
    await project.run(["deploy"]);
    const pretty = await tail("--format", "pretty");
    await ask(server, "worker", "/path");
    await prints(pretty, /GET http:\/\/worker\.\S+\/path - Ok @/);
    await prints(pretty, /\(log\) asked for { pathname: '\/path' }/);
    await ask(server, "worker", "/throw");
    await prints(pretty, /GET \S+\/throw - Exception Thrown @[\s\S]*RangeError: too far/);
    await prints(pretty, /"\* \* \* \* \*" @ .* - Ok\s+\(log\) ran \* \* \* \* \* 0/, 90_000);
    await end(pretty);

    const json = await tail("--format", "json", "--status", "error");
    await ask(server, "worker", "/path");
    await ask(server, "worker", "/throw");
    await prints(json, '"outcome": "exception"');
    expect(json.output()).not.toContain("/path");
    await end(json);
    await vi.waitFor(() =>
      expect(server.services.tails.isWatched({ accountId: "", scriptId: "" })).toBe(false),
    );
  },
  timeout,
);
