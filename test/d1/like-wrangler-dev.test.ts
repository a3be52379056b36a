import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startMiniflare, type LocalScript } from "../helpers/miniflare.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/*
 * The same calls of a D1 binding here and in `wrangler dev`, which is the public reference for databases: results,
 * types, figures and errors are equal. Left out are times, sizes, names of servers, what shows the hidden table in which
 * this platform counts writes, and \`changed_db\`, which is false there after some changes of the schema.
 */
const code = `
const all = (sql, ...values) => Object.assign(async (db) => db.prepare(sql).bind(...values).all(), { text: sql.slice(0, 200) });
const run = (sql, ...values) => Object.assign(async (db) => db.prepare(sql).bind(...values).run(), { text: sql });
const list = (count, text, by = ",") => Array.from({ length: count }, () => text).join(by);
const tables = \`create table t (id integer primary key, name text unique, data blob)
create table u (x)
create table p (id integer primary key)
create table c (p references p(id) on delete cascade)\`;
const trigger = "create trigger tr after insert on u begin insert into p values (new.x); insert into c values (new.x); end";

const values = [
  null, 0, -0, 1, -1, 1.5, 2 ** 31, 2 ** 53, 2 ** 53 + 2, -(2 ** 53), 1e300, NaN, Infinity, -Infinity, true, false,
  "", "text", "nul\\0nul", "\\ud800", "\u{1F4A9}", new Uint8Array([0, 255]), new Uint8Array(0), new Uint8Array([1, 2]).buffer,
  new Float32Array([1]), new DataView(new ArrayBuffer(2)), [1, 2], [256, -1, 1.5], [], ["a"], [null],
  undefined, 10n, {}, new Date(0), () => {}, Symbol("s"), /x/, new Map(), new Blob(["x"]), Promise.resolve(1),
];

const writes = [
  "insert into t values (7, 'seven', x'01')", "insert into t (name) values ('a'), ('b'), ('c')",
  "update t set data = null", "update t set data = null where id = 1000", "insert or ignore into t values (7, 'x', null)",
  "insert into t values (7, 'x', null) on conflict (id) do update set name = excluded.name",
  "replace into t values (7, 'y', null)", "insert into u values (1), (2) returning x", "delete from u returning x",
  "insert into p values (1), (2)", "insert into c values (1), (1), (2)", "delete from p where id = 1",
  trigger, "insert into u values (50), (51)", "insert into missing values (1)", "insert into c values (999)",
  "insert into t values (7, 'q', null)", "pragma defer_foreign_keys = on", "select 1",
  "update t set name = name || 'x' where id > 7", "create table made as select 1 as a",
];

const reads = [
  "select 9007199254740993 as big, -9223372036854775808 as least, 1e999 as inf, x'00ff' as blob, 0.1 as r, 1.0 as whole",
  "select 1 as a, 2 as a, 3", "select 1 as '', 2 as '__proto__', 3 as 'constructor'", "select * from t",
  "select count(*) from t", "select * from t where name = 'b'", "explain query plan select * from t",
  "with r as (select 1 as x) select * from r", "values (1, 2), (3, 4)", "select * from pragma_table_info('t')",
  "select json_extract('{\\"a\\": [1, {\\"b\\": null}]}', '$.a[1]') as j", "select * from json_each('[1, 2]')",
  "select strftime('%Y', 0, 'unixepoch') as y, date('2026-01-31', '+1 month') as d", "select 'a' like 'A', 'a' glob 'A'",
  "select unhex('zz'), hex(zeroblob(2)), quote(x'ff'), char(0x1F600), unicode('\u00e9')", "select printf('%s %d', 'a', 1)",
  "select random() is not null, sqlite_version() is not null, total_changes() is not null",
];

const wrong = [
  "selec 1", "select * from missing", "select missing from t", "select ?", "select :a", "select 'open", "select ;",
  "", "  ", "-- nothing", "/* nothing */", ";", "select 1; ", "select 1; select 2", "select 1 -- end", "select json('{')",
  "select abs(-9223372036854775808)", "select sum(x) from (select 9223372036854775807 as x union all select 1)",
  "select * from generate_series(1, 3)", "select sqrt(2)", "select soundex('a')", "select 'a' regexp 'a'",
  "create virtual table g using rtree(a, b, c)", "create temp table tt (a)",
];

const strangers = [
  "begin", "begin transaction", "commit", "rollback", "savepoint x", "attach 'x' as y", "detach main", "vacuum",
  "vacuum into 'x'", "select load_extension('x')", "select readfile('x')", "select writefile('x', 'y')", "select edit('x')",
  "create table _cf_x (a)", "create table sqlite_x (a)", "update sqlite_schema set sql = 'x'",
  "delete from sqlite_schema", "select fts3_tokenizer('simple')", "select * from sqlite_dbpage", "select * from dbstat",
  "create virtual table z using zipfile('x')", "create virtual table z using csv('x')",
  ...["journal_mode", "journal_mode = delete", "user_version", "user_version = 3", "table_info('t')", "foreign_keys",
    "foreign_keys = off", "recursive_triggers = on", "foreign_key_list('c')", "foreign_key_check", "index_list('t')",
    "index_info('sqlite_autoindex_t_1')", "integrity_check(1, 2)", "case_sensitive_like = on", "case_sensitive_like = off",
    "ignore_check_constraints = on", "ignore_check_constraints = off", "legacy_alter_table = on", "legacy_alter_table = off",
    "writable_schema = on", "writable_schema = reset", "schema_version", "schema_version = 1", "page_count", "max_page_count = 1", "compile_options",
    "function_list", "temp_store = 1", "temp_store_directory = '/tmp'", "cache_size", "cache_size = 100000", "mmap_size = 1000000",
    "synchronous = off", "reverse_unordered_selects = on", "reverse_unordered_selects = off", "encoding", "nothing_such", "trusted_schema = on", "wal_checkpoint",
    "database_list", "data_version", "hard_heap_limit = 1", "soft_heap_limit = 1", "busy_timeout = 1", "locking_mode = exclusive", "query_only = on",
    "secure_delete = on", "threads = 8", "wal_autocheckpoint = 0", "application_id = 5", "auto_vacuum = 1", "incremental_vacuum", "analysis_limit = 10", "shrink_memory"].map((name) => "pragma " + name),
];

const bombs = [
  "select length(zeroblob(2000000000))", "select length(printf('%.*c', 2000000000, 'x'))", "select length(hex(randomblob(5000000)))",
  "select length(printf('%1000000000d', 1))", "select length(replace(hex(zeroblob(1000000)), '0', printf('%.1000c', 'x')))",
  "select length(group_concat(a.value, printf('%.2000c', 'x'))) from json_each('[" + list(60, "1") + "]') a, json_each('[" + list(60, "1") + "]') b",
  "select json('" + "[".repeat(2000) + "]".repeat(2000) + "')", "select 'a' like '" + "a%".repeat(30) + "'",
  "select " + list(101, "1"), "create table wide (" + Array.from({ length: 101 }, (_, i) => "c" + i) + ")",
  "select " + list(150, "1", "+"), "select " + "(".repeat(1000) + "1" + ")".repeat(1000), list(8, "select 1", " union all "),
  list(5, "select 1", " union all "), "select '" + "x".repeat(100001) + "'", "select max(" + list(40, "1") + ")",
  "select max(" + list(130, "1") + ")", "with recursive r(x) as (select 1 union all select x from r) select (select 1 from r limit 1)",
  "select ?" + (2 ** 31), "select ?101", "select 1 " + "-- x\\n".repeat(1000), "select " + "not ".repeat(300) + "1",
];

const cases = [
  (db) => db.exec(tables), ...values.map((value) => all("select ? as v, typeof(?1) as t", value)),
  ...writes.flatMap((sql) => [run(sql), all("select * from t"), all("select * from c")]), ...reads.flatMap((sql) => [all(sql), run(sql)]),
  ...wrong.map((sql) => all(sql)), ...strangers.map((sql) => all(sql)), ...bombs.map((sql) => all(sql)),
  all("select 1", 1), all("select ?, ?", 1), all("select ?1, ?1", 1, 2), all("select ?3", 1), all("select :a", 1), all("select @a, $b, :a", 1, 2, 3),
  all("select 1; select ?", 1), all("select ?; select ?", 1, 2), all("select " + list(101, "?", "+"), ...Array(101).fill(1)), all("select " + list(100, "?", "+"), ...Array(100).fill(1)),
  (db) => db.prepare("select id, name from t order by id").first(), (db) => db.prepare("select id, name from t order by id").first("name"),
  (db) => db.prepare("select id from t where 0").first(), (db) => db.prepare("select id from t where 0").first("id"), (db) => db.prepare("select id from t").first("x"),
  ...["select id, name from t", "select id from t where 0", "select 1 as a, 2 as a", "create table raw_made (x)", "select x'0102' as b"]
    .flatMap((sql) => [(db) => db.prepare(sql).raw(), (db) => db.prepare(sql).raw({ columnNames: true })]),
  (db) => db.batch([]), (db) => db.batch(null), (db) => db.batch([db.prepare(""), db.prepare("select 1")]), (db) => db.batch([db.prepare("")]),
  (db) => db.batch([db.prepare("select 1 as a"), db.prepare("select ? as b").bind("x")]),
  (db) => db.batch([db.prepare("insert into u values (70)"), db.prepare("select count(*) as n from u where x = 70"), db.prepare("selec")]), all("select count(*) as n from u where x = 70"),
  ...["select 1", "", "\\n\\n", "insert into u values (80)\\ninsert into u values (81)\\n\\nselect 1", "create table e (\\n x)", "select 1; select 2",
    "insert into u values (90)\\nselec 1", "-- comment\\nselect 1", 5, "select 1\\r\\nselect 2"].map((text) => (db) => db.exec(text)),
  all("select count(*) as n from u where x in (80, 81, 90)"),
  (db) => db.prepare("select 1").bind(1, 2).all(), (db) => db.prepare("select ? as a").bind(1).bind(2).all(), (db) => db.dump(),
  async (db) => { const s = db.prepare("select ? as a"); const [a, b] = [s.bind(1), s.bind(2)]; return [await a.first("a"), await b.first("a")]; },
  (db) => JSON.stringify(db), (db) => Object.keys(db.prepare("x")), (db) => [undefined, "first-primary", "first-unconstrained"].map((each) => db.withSession(each).getBookmark()),
  (db) => db.withSession("").getBookmark(), (db) => db.withSession(null).getBookmark(), (db) => db.withSession("00000000-00000000-00000000-" + "0".repeat(32)).getBookmark(),
  async (db) => { const s = db.withSession(); await s.prepare("select 1").run(); return typeof s.getBookmark(); },
  async (db) => { const s = db.withSession(); await s.batch([s.prepare("select 1")]); return [typeof s.getBookmark(), typeof s.exec, typeof s.dump]; },
];
const hidden = ["duration", "served_by", "timings", "served_by_region", "size_after", "changed_db"];
export default {
  async fetch(request, env) {
    const answers = [];
    const [, from, count] = new URL(request.url).pathname.split("/").map(Number);
    for (const each of cases.slice(from, from + count)) {
      const shown = await Promise.resolve().then(() => each(env.DB)).then(
        (answer) => ({ answer }),
        (error) => ({ error: error.message, cause: error.cause?.message, name: error.name }),
      );
      answers.push(JSON.parse(JSON.stringify({ call: each.text ?? String(each), ...shown }, (key, value) => (hidden.includes(key) ? undefined : value))));
    }
    return Response.json(answers);
  },
};`;

type RecordedCall = { call: string };
const differenceOf = (ours: RecordedCall | undefined, theirs: RecordedCall): object[] =>
  isDeepStrictEqual(ours, theirs) ? [] : [{ ours, theirs }];

/** Calls of one request, which may make so many requests of its own. */
const callsAtOnce = 40;
let hosting: Hosting;
let local: LocalScript;
beforeAll(async () => {
  hosting = await startHosting();
  local = await startMiniflare(code, { DB: { type: "d1", id: "reference" } });
});
afterAll(async () => {
  await local.close();
  await hosting.close(0);
});

it("answers each call as wrangler dev does", async () => {
  const { body } = await hosting.call("POST", `/accounts/${hosting.account}/d1/database`, { name: "same" });
  const id = (body.result as { uuid: string }).uuid;
  await hosting.deploy("same", { code, bindings: [{ type: "d1", name: "DB", id }] });
  const differing: unknown[] = [];
  let compared = 0;
  for (;;) {
    const path = `/${compared}/${callsAtOnce}`;
    const theirs = (await (await fetch(new URL(path, local.url))).json()) as RecordedCall[];
    const ours = JSON.parse((await hosting.ask("same", path)).body) as RecordedCall[];
    for (const [i, answer] of theirs.entries()) differing.push(...differenceOf(ours[i], answer));
    compared += theirs.length;
    if (theirs.length < callsAtOnce) break;
  }
  expect(differing).toEqual([]);
  expect(compared).toBeGreaterThan(300);
});
