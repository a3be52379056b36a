import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Bookmarks of Durable Objects, by the methods of `ctx.storage`. */
const code = `import { DurableObject } from "cloudflare:workers";
class Base extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.seen = this.read?.();
  }
  now() { return this.ctx.storage.getCurrentBookmark(); }
  ofTime(ms) { return this.ctx.storage.getBookmarkForTime(typeof ms === "string" ? new Date(Number(ms)) : ms); }
  restoreTo(bookmark) { return this.ctx.storage.onNextSessionRestoreBookmark(bookmark); }
}
export class Notes extends Base {
  read() {
    this.ctx.storage.sql.exec("create table if not exists notes (n integer primary key)");
    return this.ctx.storage.sql.exec("select n from notes order by n").toArray().map(({ n }) => n);
  }
  async write(n) { this.ctx.storage.sql.exec("insert into notes values (?)", n); await this.ctx.storage.put("last", n); }
  async all() { return { notes: this.read(), last: await this.ctx.storage.get("last"), seen: this.seen, alarm: await this.ctx.storage.getAlarm() }; }
  async restoreNow(bookmark) { await this.ctx.storage.onNextSessionRestoreBookmark(bookmark); this.ctx.abort("restart"); }
  async restoreLater(bookmark) {
    const undo = await this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
    this.ctx.waitUntil(scheduler.wait(20).then(() => this.ctx.abort("restart")));
    return undo;
  }
  async writeThenNow(n) { this.write(n); return this.ctx.storage.getCurrentBookmark(); }
  plan(ms) { return this.ctx.storage.setAlarm(Date.now() + ms); }
  alarm() {}
  restart() { this.ctx.abort("restart"); }
  async facet() {
    const facet = this.ctx.facets.get("child", () => ({ class: this.ctx.exports.Child }));
    return facet.try();
  }
}
export class Child extends DurableObject {
  async try() { return this.ctx.storage.getCurrentBookmark().catch((error) => error.message); }
}
export class Keys extends Base {}
export default { async fetch(request, env) {
  const { binding = "NOTES", name = "one", method, args = [] } = await request.json();
  try { return Response.json({ ok: await env[binding].getByName(name)[method](...args) }); }
  catch (error) { return Response.json({ error: error.message, kind: error.name }); }
} };`;
const bindings = [
  { type: "durable_object_namespace", name: "NOTES", class_name: "Notes" },
  { type: "durable_object_namespace", name: "KEYS", class_name: "Keys" },
];
const metadata = {
  migrations: { new_tag: "v1", new_sqlite_classes: ["Notes"], new_classes: ["Keys"] },
};

interface CallResult {
  ok?: unknown;
  error?: string;
  kind?: string;
}
interface All {
  notes: number[];
  last: number;
  seen: number[];
  alarm: number | null;
}
const without = "This Durable Object's storage back-end does not implement point-in-time recovery.";
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
const settings = {
  dataDir: join(folder, "data"),
  ephemeral: false,
  objectLog: "1s",
  backupFolder: join(folder, "log"),
};
let hosting: Hosting;
const call = async (method: string, args: unknown[] = [], to: object = {}): Promise<CallResult> => {
  const body = JSON.stringify({ method, args, ...to });
  return JSON.parse((await hosting.ask("notes", "/", { method: "POST", body })).body) as CallResult;
};
const done = async <T = string>(method: string, args: unknown[] = [], to: object = {}): Promise<T> => {
  const answer = await call(method, args, to);
  expect(answer).not.toHaveProperty("error");
  return answer.ok as T;
};
const form = /^[0-9a-f]{8}-[0-9a-f]{8}-0000000[01]-[0-9a-f]{32}$/;

beforeAll(async () => {
  hosting = await startHosting(settings);
  await hosting.deploy("notes", { code, bindings, metadata });
});
afterAll(async () => {
  await hosting.close(0);
  rmSync(folder, { recursive: true });
});

it("restores each bookmark at the next start, whose constructor sees the restored data", async () => {
  const marks: string[] = [];
  for (let n = 0; n < 5; n++) {
    await done("write", [n]);
    marks.push(await done("now"));
  }
  expect(marks).toEqual(marks.toSorted());
  for (const mark of marks) expect(mark).toMatch(form);
  const undo = await done("restoreTo", [marks[2]]);
  // The session goes on with its data, and what it writes is part of what the undo bookmark brings back.
  await done("write", [5]);
  expect((await done<All>("all")).notes).toEqual([0, 1, 2, 3, 4, 5]);
  expect(await call("restart")).toMatchObject({ error: "restart" });
  expect(await done("all")).toMatchObject({ notes: [0, 1, 2], last: 2, seen: [0, 1, 2] });
  // It takes place once.
  await done("write", [9]);
  await call("restart");
  expect(await done("all")).toMatchObject({ notes: [0, 1, 2, 9], last: 9 });
  expect(undo).toMatch(form);
  await call("restoreNow", [undo]);
  expect(await done("all")).toMatchObject({ notes: [0, 1, 2, 3, 4, 5], last: 5 });
  await call("restoreNow", [marks[0]]);
  expect(await done("all")).toMatchObject({ notes: [0], last: 0 });
});

it("has the state of a time", async () => {
  const to = { name: "time" };
  await done("write", [1], to);
  await done("now", [], to); // the log of the object has begun
  const ms = Date.now() + 1;
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(ms), { interval: 1 });
  await done("write", [2], to);
  expect(await done("ofTime", [ms], to)).toBe(await done("ofTime", [String(ms)], to));
  await call("restoreNow", [await done("ofTime", [ms], to)], to);
  expect((await done<All>("all", [], to)).notes).toEqual([1]);
});

it("takes what was written before the question, and the alarm", async () => {
  const to = { name: "alarm" };
  await done("plan", [60_000], to);
  const { alarm } = await done<All>("all", [], to);
  const mark = await done("writeThenNow", [1], to);
  await done("plan", [120_000], to);
  await call("restoreNow", [mark], to);
  expect(await done("all", [], to)).toMatchObject({ notes: [1], alarm });
});

it("restores when the object restarts after its answer", async () => {
  const to = { name: "later" };
  await done("write", [1], to);
  const mark = await done("now", [], to);
  await done("write", [2], to);
  const undo = await done("restoreLater", [mark], to);
  await vi.waitFor(async () => expect((await call("all", [], to)).ok).toMatchObject({ notes: [1] }));
  await done("restoreTo", [undo], to);
  await call("restart", [], to);
  expect((await done<All>("all", [], to)).notes).toEqual([1, 2]);
});

it("leaves other objects of the namespace alone", async () => {
  await done("write", [1], { name: "a" });
  await done("write", [1], { name: "b" });
  const mark = await done("now", [], { name: "a" });
  await done("write", [2], { name: "a" });
  const { pids } = hosting.services.objectCells;
  await call("restoreNow", [mark], { name: "a" });
  expect((await done<All>("all", [], { name: "a" })).notes).toEqual([1]);
  expect((await done<All>("all", [], { name: "b" })).seen).toEqual([]); // the same instance as before
  expect(hosting.services.objectCells.pids).toEqual(pids);
});

it("keeps an awaited restore when the cell is killed, and restores before the next instance", async () => {
  const to = { name: "killed" };
  await done("write", [1], to);
  const mark = await done("now", [], to);
  await done("write", [2], to);
  await done("restoreTo", [mark], to);
  for (const pid of hosting.services.objectCells.pids) process.kill(pid, "SIGKILL");
  await vi.waitFor(async () =>
    expect((await call("all", [], to)).ok).toMatchObject({ notes: [1], seen: [1] }),
  );
});

it("restores by the API, which takes the object's own bookmarks and drops an awaited restore", async () => {
  const to = { name: "api" };
  await done("write", [1], to);
  const mark = await done("now", [], to);
  await done("write", [2], to);
  const second = await done("now", [], to);
  await done("write", [3], to);
  await done("restoreTo", [second], to);
  const base = `${hosting.ready.api}/accounts/${hosting.account}/workers/durable_objects/namespaces`;
  const api = async <T>(path: string, body?: object): Promise<T> => {
    const response = await fetch(`${base}${path}`, {
      headers: { authorization: `Bearer ${ownerToken}`, "content-type": "application/json" },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
    return ((await response.json()) as { result: T }).result;
  };
  const { id: namespace } = (await api<{ id: string; class: string }[]>("")).find(
    (each) => each.class === "Notes",
  )!;
  const all = await api<{ id: string }[]>(`/${namespace}/objects`);
  const { id } = all.find((each) => mark.endsWith(each.id.slice(0, 32)))!;
  const { previous_bookmark } = await api<{ previous_bookmark: string }>(
    `/${namespace}/objects/${id}/restore`,
    { bookmark: mark },
  );
  expect((await done<All>("all", [], to)).notes).toEqual([1]);
  await call("restart", [], to);
  expect((await done<All>("all", [], to)).notes).toEqual([1]);
  await call("restoreNow", [previous_bookmark], to);
  expect((await done<All>("all", [], to)).notes).toEqual([1, 2, 3]);
});

it("refuses what it cannot restore, with a reason, and goes on", async () => {
  const to = { name: "misuse" };
  await done("write", [1], to);
  const other = await done("now");
  const errors: [string, unknown[], string][] = [
    ["restoreTo", ["nonsense"], "Expected a bookmark of this database or object"],
    ["restoreTo", ["x".repeat(100_000)], "Expected a time or a bookmark."],
    ["restoreTo", [other], "Expected a bookmark of this database or object"],
    [
      "restoreTo",
      [`ffffffff-ffffffff-00000000-${(await done("now", [], to)).slice(-32)}`],
      "Expected a bookmark that is not in the future",
    ],
    [
      "restoreTo",
      [`00000000-00000000-00000000-${(await done("now", [], to)).slice(-32)}`],
      "Expected a moment from ",
    ],
    [
      "restoreTo",
      [await done("restoreTo", [await done("now", [], to)], to)],
      "The restore that this bookmark undoes has not taken place",
    ],
    ["ofTime", [Date.now() + 60_000], "Expected a time that is not in the future"],
    ["ofTime", [0], "Expected a time within the last 30 days"],
  ];
  for (const [method, args, message] of errors)
    expect((await call(method, args, to)).error, message).toContain(message);
  for (const wrong of [{}, null])
    expect(await call("ofTime", [wrong], to)).toEqual({
      error:
        "Failed to execute 'getBookmarkForTime' on 'DurableObjectStorage': parameter 1 is not of type 'date'.",
      kind: "TypeError",
    });
  expect((await call("ofTime", ["nonsense"], to)).kind).toBe("TypeError");
  for (const [method, args] of [
    ["now", []],
    ["ofTime", [1]],
    ["restoreTo", ["x"]],
  ] as const)
    expect((await call(method, [...args], { binding: "KEYS" })).error).toBe(without);
  expect(await done("facet", [], to)).toBe(without);
  expect((await done<All>("all", [], to)).notes).toEqual([1]);
});

it("keeps an awaited restore, and what undoes one, when the program starts again", async () => {
  const to = { name: "program" };
  await done("write", [1], to);
  const mark = await done("now", [], to);
  await done("write", [2], to);
  const undo = await done("restoreTo", [mark], to);
  await hosting.close(0);
  hosting = await startHosting(settings);
  expect(await done("all", [], to)).toMatchObject({ notes: [1], seen: [1] });
  await hosting.close(0);
  hosting = await startHosting(settings);
  await call("restoreNow", [undo], to);
  expect((await done<All>("all", [], to)).notes).toEqual([1, 2]);
});
