import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { setTime } from "../../src/platform/timers/clock.ts";
import { clockMoved } from "../../src/platform/timers/run-at.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Alarms of objects: a part of their transactions, run at least once, and tried again when they fail. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const code = `import { DurableObject } from "cloudflare:workers";
const keep = (storage, value) => storage.kv.put("log", [...(storage.kv.get("log") ?? []), value]);
const orders = {
  log: ({ storage }) => storage.kv.get("log") ?? [],
  set: ({ storage }, ms) => storage.setAlarm(Date.now() + Number(ms)),
  get: async ({ storage }) => (await storage.getAlarm()) !== null,
  delete: ({ storage }) => storage.deleteAlarm(),
  plan: ({ storage }, plan) => storage.kv.put("plan", plan),
  unset: async ({ storage }) => { await storage.setAlarm(Date.now() + 50); await storage.deleteAlarm(); },
  move: async ({ storage }) => { await storage.setAlarm(Date.now() + 50); await storage.setAlarm(Date.now() + 1e6); },
  slow: ({ storage }) => { storage.kv.put("plan", "slow"); return storage.setAlarm(Date.now() + 10); },
  date: ({ storage }) => storage.setAlarm(new Date(Date.now() + 30)),
  far: async ({ storage }) => { await storage.setAlarm(4e12); return storage.getAlarm(); },
  past: async ({ storage }) => { await storage.setAlarm(1); return (await storage.getAlarm()) > Date.now() - 5000; },
  bad: async ({ storage }) => {
    const texts = [];
    for (const time of [NaN, Infinity, -Infinity, 1e300, "12", {}, null, new Date(NaN), 0, -1])
      await storage.setAlarm(time).then(() => texts.push("accepted"), (error) => texts.push(String(error)));
    return texts;
  },
  setAndRollBackSync: ({ storage }) => {
    try { storage.transactionSync(() => { storage.setAlarm(Date.now() + 20); throw new Error("back"); }); } catch {}
    return storage.getAlarm();
  },
  setAndRollBack: async ({ storage }) => {
    await storage.transaction(async (transaction) => { await transaction.setAlarm(Date.now() + 20); transaction.rollback(); });
    return storage.getAlarm();
  },
  deleteAndRollBack: async ({ storage }) => {
    await storage.setAlarm(Date.now() + 50);
    await storage.transaction(async (transaction) => { await transaction.deleteAlarm(); transaction.rollback(); });
    return (await storage.getAlarm()) !== null;
  },
  inTransaction: ({ storage }) => storage.transaction(async (transaction) => {
    await transaction.setAlarm(Date.now() + 30);
    return (await transaction.getAlarm()) !== null && [...(await transaction.list()).keys()].length === 0;
  }),
  keys: async ({ storage }) => {
    await storage.setAlarm(Date.now() + 1e6);
    storage.kv.put("a", 1);
    const limited = await storage.list({ reverse: true, limit: 1 });
    return [[...(await storage.list()).keys()], [...limited.keys()], [...storage.kv.list()].map(([key]) => key), [...(await storage.list({ prefix: "a" })).keys()]];
  },
  sql: ({ storage }) => {
    const tries = ["select * from _cf_KV", "delete from _cf_KV", "update _cf_KV set value = x'00'", "drop table _cf_KV", "create table _cf_X (a)", "insert into _cf_KV values ('x', x'00')"];
    return tries.map((sql) => { try { storage.sql.exec(sql).toArray(); return "accepted"; } catch (error) { return error.message; } });
  },
  deleteAll: async ({ storage }) => { await storage.setAlarm(Date.now() + 40); await storage.deleteAll(); return storage.getAlarm(); },
};
export class Clock extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    if (ctx.id.name === "early") ctx.blockConcurrencyWhile(async () => {
      if ((await ctx.storage.getAlarm()) === null && ctx.storage.kv.get("log") === undefined) await ctx.storage.setAlarm(Date.now() + 20);
    });
  }
  order(name, ...args) { return orders[name](this.ctx, ...args); }
  async alarm(info) {
    const { storage } = this.ctx;
    keep(storage, { ...info, name: this.ctx.id.name, seen: await storage.getAlarm() });
    const plan = storage.kv.get("plan");
    if (plan === "fail") throw new Error("not yet");
    if (plan === "again" && storage.kv.get("log").length < 3) await storage.setAlarm(Date.now() + 10);
    if (plan === "replace" && storage.kv.get("log").length < 2) { await storage.setAlarm(Date.now() + 10); throw new Error("once"); }
    if (plan === "slow" && storage.kv.get("log").length < 2) await new Promise((resolve) => setTimeout(resolve, 60_000));
    if (plan === "stop") { await storage.deleteAlarm(); throw new Error("never"); }
  }
}
export class Quiet extends DurableObject {
  async order() { return this.ctx.storage.setAlarm(Date.now() + 10).catch(String); }
}
export default { async fetch(request, env) {
  const [, binding, name, ...order] = new URL(request.url).pathname.split("/");
  try { return Response.json({ ok: await env[binding].getByName(name).order(...order) }); }
  catch (error) { return Response.json({ error: String(error) }); }
} };`;
const upload = {
  code,
  bindings: ["Clock", "Quiet"].map((name) => ({ type: "durable_object_namespace", name, class_name: name })),
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Clock", "Quiet"] } },
};
interface Ran {
  retryCount: number;
  isRetry: boolean;
  scheduledTime: number;
  name?: string;
  seen: number | null;
}
const ask = async (path: string): Promise<unknown> => {
  const { ok, error } = JSON.parse((await hosting.ask("clock", path)).body) as {
    ok?: unknown;
    error?: string;
  };
  if (error !== undefined) throw new Error(error);
  return ok ?? null;
};
const log = async (name: string) => (await ask(`/Clock/${name}/log`)) as Ran[];
const runs = async (name: string, count: number) =>
  expect.poll(async () => (await log(name)).length).toBe(count);

it("an alarm runs once when it is due, with its time, and as the object that set it", async () => {
  await hosting.deploy("clock", upload);
  await ask("/Clock/one/set/30");
  await runs("one", 1);
  expect(await log("one")).toEqual([
    { retryCount: 0, isRetry: false, scheduledTime: expect.any(Number), name: "one", seen: null },
  ]);
  expect(await ask("/Clock/one/get")).toBe(false);
  await ask("/Clock/dated/date");
  await runs("dated", 1);
  await ask("/Clock/early/get");
  await runs("early", 1);
});

it("a deleted, replaced or rolled back alarm does not run; one whose deletion is rolled back does", async () => {
  // Each object changes its alarm before it is due: until then the clock of the platform stands still.
  const beganMs = Date.now();
  setTime(() => beganMs);
  onTestFinished(() => setTime());
  await ask("/Clock/gone/unset");
  await ask("/Clock/moved/move");
  expect(await ask("/Clock/back/setAndRollBackSync")).toBe(null);
  expect(await ask("/Clock/back2/setAndRollBack")).toBe(null);
  expect(await ask("/Clock/kept/deleteAndRollBack")).toBe(true);
  expect(await ask("/Clock/within/inTransaction")).toBe(true);
  expect(await ask("/Clock/all/deleteAll")).toBe(null);
  setTime();
  clockMoved();
  await runs("kept", 1);
  await runs("within", 1);
  // An alarm that was set after all of them has run, so they would have.
  await ask("/Clock/last/set/150");
  await runs("last", 1);
  for (const name of ["gone", "moved", "back", "back2", "all"]) expect(await log(name)).toEqual([]);
  expect(await ask("/Clock/moved/get")).toBe(true);
});

it("a failed alarm is tried six times more; one that the handler sets or deletes replaces it", async () => {
  const { objectAlarms } = hosting.services;
  objectAlarms.firstRetryMs = 5;
  for (const plan of ["fail", "again", "replace", "stop"]) {
    await ask(`/Clock/${plan}/plan/${plan}`);
    await ask(`/Clock/${plan}/set/10`);
  }
  await runs("fail", 7);
  expect((await log("fail")).map(({ retryCount, isRetry }) => [retryCount, isRetry])).toEqual(
    [0, 1, 2, 3, 4, 5, 6].map((count) => [count, count > 0]),
  );
  expect(new Set((await log("fail")).map(({ scheduledTime }) => scheduledTime)).size).toBe(1);
  await expect.poll(() => ask("/Clock/fail/get")).toBe(false);
  await runs("again", 3);
  await runs("replace", 2);
  expect((await log("replace")).map(({ retryCount }) => retryCount)).toEqual([0, 0]);
  expect(await log("stop")).toHaveLength(1);
});

it("an alarm that is set while the handler runs sends no message, and runs also if the process ends", async () => {
  const { objectAlarms, objectCells } = hosting.services;
  objectAlarms.firstRetryMs = 5;
  const note = vi.spyOn(objectAlarms, "note");
  await ask("/Clock/told/plan/again");
  await ask("/Clock/told/set/10");
  await runs("told", 3);
  expect(note).toHaveBeenCalledTimes(1);
  await ask("/Clock/ended/slow");
  await runs("ended", 1);
  await ask("/Clock/ended/set/300");
  expect(note).toHaveBeenCalledTimes(2);
  for (const pid of objectCells.pids) process.kill(pid, "SIGKILL");
  await runs("ended", 2);
  note.mockRestore();
});

it("an alarm whose process ends runs again, and that is no failure of it", async () => {
  const { objectAlarms, objectCells } = hosting.services;
  objectAlarms.firstRetryMs = 5;
  await ask("/Clock/slow/slow");
  await runs("slow", 1);
  for (const pid of objectCells.pids) process.kill(pid, "SIGKILL");
  await runs("slow", 2);
  expect((await log("slow")).map(({ retryCount }) => retryCount)).toEqual([0, 0]);
});

it("the alarms of a deleted class are forgotten", async () => {
  const { objectAlarms, storage } = hosting.services;
  const before = objectAlarms.size;
  await hosting.deploy("doomed", upload);
  const { body } = await hosting.ask("doomed", "/Clock/x/set/1000000");
  expect(JSON.parse(body)).toEqual({});
  expect(objectAlarms.size).toBe(before + 1);
  const rows = async () =>
    (await storage.read.selectFrom("object_alarms").select("object_id").execute()).length;
  await expect.poll(rows).toBe(objectAlarms.size);
  await hosting.call("DELETE", `/accounts/${hosting.account}/workers/scripts/doomed`);
  await expect.poll(() => objectAlarms.size).toBe(before);
  await expect.poll(rows).toBe(before);
});

it("times that are no times are refused as publicly; the past is now", async () => {
  const invalid = "TypeError: The value cannot be converted because it is not a valid Date.";
  const noDate =
    "TypeError: Failed to execute 'setAlarm' on 'DurableObjectStorage': parameter 1 is not of type 'date'.";
  const early = "TypeError: setAlarm() cannot be called with an alarm time <= 0";
  expect(await ask("/Clock/bad/bad")).toEqual([
    ...[invalid, invalid, invalid, invalid, noDate, noDate, noDate, invalid, early, early],
  ]);
  expect(await ask("/Clock/bad/get")).toBe(false);
  expect(await ask("/Clock/far/far")).toBe(4e12);
  expect(await ask("/Clock/past/past")).toBe(true);
  await runs("past", 1);
  expect(await ask("/Quiet/one/set")).toBe(
    "TypeError: Your Durable Object class must have an alarm() handler in order to call setAlarm()",
  );
});

it("a script's own keys and SQL do not show or reach the alarm", async () => {
  expect(await ask("/Clock/keys/keys")).toEqual([["a"], ["a"], ["a"], ["a"]]);
  for (const text of (await ask("/Clock/keys/sql")) as string[])
    expect(text).toMatch(/prohibited|not authorized|SQLITE_AUTH|reserved/);
  expect(await ask("/Clock/keys/get")).toBe(true);
});
