import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** The D1 binding of a script, which is workerd's own client, on databases of this platform. */
const code = `
const outcomeOf = async (work) => {
  try { return await work(); }
  catch (error) { return { error: error.message, cause: error.cause?.message }; }
};
const cases = {
  create: (db) => db.exec("create table t (id integer primary key, name text unique, data blob)\\ncreate table u (x)"),
  types: async (db) => {
    const bytes = new Uint8Array([1, 2, 255]);
    await db.prepare("insert into t values (?, ?, ?)").bind(7, "seven", bytes).run();
    const { results, success, meta } = await db.prepare("select *, 1.5 as real, null as empty from t where id = ?").bind(7).all();
    return { results, success, meta };
  },
  bool: (db) => db.prepare("select ? as yes, ? as no").bind(true, false).first(),
  first: async (db) => [
    await db.prepare("select name from t").first(), await db.prepare("select name from t").first("name"),
    await db.prepare("select name from t where 0").first(), await outcomeOf(() => db.prepare("select name from t").first("x")),
  ],
  raw: async (db) => [
    await db.prepare("select id, name from t").raw(), await db.prepare("select id, name from t").raw({ columnNames: true }),
  ],
  run: async (db) => (await db.prepare("insert into u values (1), (2)").run()).meta,
  update: async (db) => (await db.prepare("update u set x = x + 1").run()).meta.changes,
  none: async (db) => (await db.prepare("update u set x = 1 where x = 100").run()).meta,
  remove: async (db) => (await db.prepare("delete from u").run()).meta.changes,
  batch: async (db) => (await db.batch([
    db.prepare("insert into u values (?)").bind(10), db.prepare("insert into u values (?)").bind(11),
    db.prepare("select x from u order by x"), db.prepare("select changes() as n"),
  ])).map(({ results }) => results),
  rollback: async (db) => [
    await outcomeOf(() => db.batch([db.prepare("insert into u values (99)"), db.prepare("insert into t values (7, 'x', null)")])),
    await db.prepare("select count(*) as n from u where x = 99").first("n"),
  ],
  errors: async (db) => [
    await outcomeOf(() => db.prepare("selec 1").all()), await outcomeOf(() => db.prepare("select * from missing").first()),
    await outcomeOf(() => db.prepare("insert into t values (7, 'y', null)").run()), await outcomeOf(() => db.exec("selec 1")),
    await outcomeOf(() => db.prepare("select ?").bind(undefined)), await outcomeOf(() => db.prepare("").run()),
    await outcomeOf(() => db.prepare("select ?, ?").bind(1).run()),
  ],
  large: async (db) => {
    const answers = [];
    for (const value of ["x".repeat(2_000_000), "x".repeat(2_000_001), "\u00e9".repeat(1_000_001), new Uint8Array(2_000_001)])
      answers.push(await outcomeOf(() => db.prepare("select length(?) as n").bind(value).first("n")));
    for (const length of [2_000_000, 2_000_001]) answers.push(await outcomeOf(async () => (await db.prepare("select printf('%.*c', 100000, 'x') as a, substr(hex(zeroblob(1500000)), 1, ?) as text").bind(length).first("text")).length));
    answers.push(await outcomeOf(() => db.prepare("select zeroblob(2000001)").first()));
    return answers;
  },
  dump: (db) => outcomeOf(() => db.dump()),
  strangers: async (db) => {
    const answers = {};
    for (const sql of ["attach 'x.db' as y", "pragma journal_mode = delete", "vacuum into 'x'", "begin", "savepoint s",
      "select load_extension('x')", "select * from _cf_KV", "drop table _cf_KV", "create table _cf_mine (x)", "select readfile('/etc/passwd')"])
      answers[sql] = (await outcomeOf(() => db.prepare(sql).all())).error ?? "allowed";
    return answers;
  },
  pragmas: async (db) => [
    (await db.prepare("pragma table_info('u')").all()).results.length, (await db.prepare("pragma defer_foreign_keys = on").all()).success,
  ],
  many: (db) => outcomeOf(() => db.prepare("with recursive c(x) as (select 1 union all select x + 1 from c) select printf('%.1000c', 'x') as text from c").all()),
  session: async (db) => {
    const session = db.withSession("first-primary");
    const before = session.getBookmark();
    await session.prepare("select 1").run();
    const one = session.getBookmark();
    await session.prepare("insert into u values (5)").run();
    const two = session.getBookmark();
    const other = db.withSession(two);
    await other.prepare("select 1").run();
    return { before, one, two, three: other.getBookmark(), kind: db.constructor.name, keys: Object.keys(db) };
  },
  add: (db) => Promise.all(Array.from({ length: 100 }, () => db.batch([
    db.prepare("update n set x = x + 1"), db.prepare("insert into log select x from n"),
  ]))).then(() => db.prepare("select (select x from n) as x, count(distinct x) as steps from log").first()),
  prepare: (db) => db.exec("create table n (x)\\ncreate table log (x)\\ninsert into n values (0)"),
  spin: (db) => outcomeOf(() => db.prepare("insert into n with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c").run()),
};
export default {
  async fetch(request, env) {
    const [, name, database = "DB"] = new URL(request.url).pathname.split("/");
    return Response.json((await cases[name](env[database])) ?? null);
  },
};`;

let hosting: Hosting;
let path: string;
const ids: string[] = [];
beforeAll(async () => {
  hosting = await startHosting();
  path = `/accounts/${hosting.account}/d1/database`;
  for (const name of ["first", "second"]) {
    const { body } = await hosting.call("POST", path, { name });
    ids.push((body.result as { uuid: string }).uuid);
  }
  const bindings = [
    { type: "d1", name: "DB", id: ids[0] },
    { type: "d1", name: "OTHER", id: ids[1] },
  ];
  await hosting.deploy("shop", { code, bindings });
});
afterAll(async () => hosting.close(0));

const ask = async <T>(what: string): Promise<T> => {
  const { body } = await hosting.ask("shop", `/${what}`);
  try {
    return JSON.parse(body) as T;
  } catch {
    throw new Error(body);
  }
};

it("returns rows, types and figures as the public client does", async () => {
  expect(await ask("create")).toMatchObject({ count: 2 });
  expect(await ask("types")).toMatchObject({
    results: [{ id: 7, name: "seven", data: [1, 2, 255], real: 1.5, empty: null }],
    success: true,
    meta: {
      changes: 0,
      changed_db: false,
      rows_read: 1,
      rows_written: 0,
      last_row_id: 7,
      served_by_primary: true,
    },
  });
  expect(await ask("bool")).toEqual({ yes: 1, no: 0 });
  expect(await ask("first")).toEqual([
    { name: "seven" },
    "seven",
    null,
    { error: "D1_COLUMN_NOTFOUND: Column not found (x)", cause: "Column not found" },
  ]);
  expect(await ask("raw")).toEqual([
    [[7, "seven"]],
    [
      ["id", "name"],
      [7, "seven"],
    ],
  ]);
  expect(await ask("run")).toMatchObject({ changes: 2, last_row_id: 2, changed_db: true, rows_written: 2 });
  expect(await ask("update")).toBe(2);
  expect(await ask("none")).toMatchObject({ changes: 0, changed_db: false, rows_read: 2 });
  expect(await ask("remove")).toBe(2);
});

it("runs a batch as one transaction", async () => {
  expect(await ask("batch")).toEqual([[], [], [{ x: 10 }, { x: 11 }], [{ n: 1 }]]);
  const [failed, left] = await ask<[{ error: string }, number]>("rollback");
  expect(failed.error).toMatch(/^D1_ERROR: UNIQUE constraint failed: t\.id: SQLITE_CONSTRAINT/);
  expect(left).toBe(0);
});

it("runs concurrent batches one after the other", async () => {
  await ask("prepare");
  expect(await ask("add")).toEqual({ x: 100, steps: 100 });
});

it("reports errors with the public texts", async () => {
  const errors = (await ask<{ error: string }[]>("errors")).map(({ error }) => error);
  expect(errors).toEqual([
    'D1_ERROR: near "selec": syntax error at offset 0: SQLITE_ERROR',
    "D1_ERROR: no such table: missing: SQLITE_ERROR",
    expect.stringMatching(/^D1_ERROR: UNIQUE constraint failed: t\.id: SQLITE_CONSTRAINT/),
    'D1_EXEC_ERROR: Error in line 1: selec 1: near "selec": syntax error at offset 0: SQLITE_ERROR',
    "D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined'",
    "D1_ERROR: No SQL statements detected.",
    "D1_ERROR: Wrong number of parameter bindings for SQL query.",
  ]);
});

it("refuses texts and blobs of more than 2,000,000 bytes, and dumps", async () => {
  const refused = { error: "D1_ERROR: string or blob too big: SQLITE_TOOBIG" };
  const expected = [2_000_000, refused, refused, refused, 2_000_000, refused, refused];
  expect(await ask("large")).toMatchObject(expected);
  expect(await ask("dump")).toMatchObject({ error: "D1_DUMP_ERROR: Status + 404" });
});

it("gives sessions bookmarks that grow with each write", async () => {
  const { before, one, two, three, kind, keys } = await ask<Record<string, string>>("session");
  expect(before).toBeNull();
  expect(one).toMatch(/^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/);
  expect(two! > one!).toBe(true);
  expect(three).toBe(two);
  expect([kind, keys]).toEqual(["D1Database", []]);
});

it("refuses SQL that leaves the database, and too many rows", async () => {
  const refused = await ask<Record<string, string>>("strangers");
  for (const [sql, error] of Object.entries(refused)) expect([sql, error]).not.toEqual([sql, "allowed"]);
  expect(refused["attach 'x.db' as y"]).toBe("D1_ERROR: not authorized: SQLITE_AUTH");
  expect(await ask("pragmas")).toEqual([1, true]);
  expect(await ask<{ error: string }>("many")).toMatchObject({
    error:
      "D1_ERROR: The rows of the answer take more than 32 MiB. Select fewer of them, for example with LIMIT.",
  });
});

it("ends a query without end; the database and its neighbour answer again", async () => {
  await ask("prepare/OTHER");
  const spinning = ask<{ error: string }>("spin/OTHER");
  expect((await spinning).error).toBe("D1_ERROR: D1 DB exceeded its CPU time limit and was reset.");
  expect(await ask("bool/OTHER")).toEqual({ yes: 1, no: 0 });
  expect(await ask("bool")).toEqual({ yes: 1, no: 0 });
});

it("reaches no database after its deletion, and leaves no files of it", async () => {
  const folder = hosting.services.objectFolders.path;
  const namespace = ids[1]!.replaceAll("-", "");
  expect(await readdir(folder)).toContain(namespace);
  expect((await hosting.call("DELETE", `${path}/${ids[1]}`)).status).toBe(200);
  await vi.waitFor(async () => expect(await readdir(folder)).not.toContain(namespace));
  const { body } = await hosting.ask("shop", "/bool/OTHER");
  expect(body).toContain("does not exist any more");
  expect(await ask("bool")).toEqual({ yes: 1, no: 0 });
});

it("binds only databases of the script's account", async () => {
  const { body } = await hosting.call("POST", "/accounts", { name: "others" });
  const theirs = `/accounts/${(body.result as { id: string }).id}/d1/database`;
  const created = await hosting.call("POST", theirs, { name: "first" });
  const { uuid } = created.body.result as { uuid: string };
  const bindings = [{ type: "d1", name: "DB", id: uuid }];
  await expect(hosting.deploy("thief", { code, bindings })).rejects.toThrow(
    "which does not exist on this account",
  );
  expect((await hosting.call("GET", `${path}/${uuid}`)).body.errors).toMatchObject([{ code: 7404 }]);
});
