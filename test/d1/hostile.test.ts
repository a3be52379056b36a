import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { callsOf, startHosting, type Calls, type Hosting } from "../runtime/platform.ts";

/** SQL of strangers: it ends, its database answers again, and neighbours answer all the time. */
const code = `export default { async fetch(request, env) {
  const answers = [];
  for (const sql of await request.json()) {
    try { answers.push((await env.DB.prepare(sql).all()).results.length); }
    catch (error) { answers.push(error.message); }
  }
  return Response.json(answers);
} };`;
const endless = "with recursive c(x) as (select 1 union all select x + 1 from c)";
const many = (count: number): string =>
  `with recursive c(x) as (select 1 union all select x + 1 from c where x < ${count})`;

let hosting: Hosting;
let others: Calls;
let databases = 0;
beforeAll(async () => {
  hosting = await startHosting();
  const { body } = await hosting.call("POST", "/accounts", { name: "Others" });
  others = await callsOf({ ...hosting.ready, account_id: body.result.id as string }, ownerToken);
  await newDatabase(others, "neighbour");
  await newDatabase(hosting, "same");
});
afterAll(async () => hosting?.close(0));

/** Deploys a script with a database of its own. Returns the path of the database. */
async function newDatabase(calls: Calls, name: string): Promise<string> {
  const path = `/accounts/${calls.account}/d1/database`;
  const { body } = await hosting.call("POST", path, { name });
  const { uuid } = body.result as { uuid: string };
  await calls.deploy(name, { code, bindings: [{ type: "d1", name: "DB", id: uuid }] });
  return `${path}/${uuid}`;
}

async function run(calls: Calls, script: string, ...statements: string[]): Promise<unknown[]> {
  const { body } = await calls.ask(script, "/", { method: "POST", body: JSON.stringify(statements) });
  return JSON.parse(body) as unknown[];
}

/** Runs work while a database of another account is asked all the time, and must answer each time. */
async function besideNeighbour<T>(work: () => Promise<T>): Promise<T> {
  const over = new AbortController();
  const answers: unknown[] = [];
  const ask = async (): Promise<void> => {
    do {
      answers.push(...(await run(others, "neighbour", "select 1", "create table if not exists t (x)")));
    } while (!over.signal.aborted);
  };
  const asking = ask();
  try {
    return await work();
  } finally {
    over.abort();
    await asking;
    expect(new Set(answers)).toEqual(new Set([1, 0]));
    expect(answers.length).toBeGreaterThan(2);
  }
}

/** Runs hostile SQL on a new database, which must answer after that, as the account's other database does. */
async function attack(...statements: string[]): Promise<unknown[]> {
  const name = `attack${++databases}`;
  await newDatabase(hosting, name);
  const answers = await besideNeighbour(async () => run(hosting, name, ...statements));
  expect(await run(hosting, name, "select 1")).toEqual([1]);
  expect(await run(hosting, "same", "select 1")).toEqual([1]);
  return answers;
}

const cpu = "D1_ERROR: D1 DB exceeded its CPU time limit and was reset.";
const tooBig = "D1_ERROR: string or blob too big: SQLITE_TOOBIG";

describe("a statement without end is ended", () => {
  it.for([
    ["of JSON", "json_valid(json_array(x, printf('%.9999c', 'j')))"],
    ["of patterns", "x || printf('%.9999c', 'a') like '%a%a%a%a%a%a%b%'"],
    ["of blobs", "length(hex(randomblob(1000000)))"],
  ])("%s", async ([, value]) => {
    expect(await attack(`create table t as ${endless} select count(${value}) as n from c`)).toEqual([cpu]);
  });
});

it("memory of a statement is limited", async () => {
  const tooMany = expect.stringMatching(/take more than 32 MiB/) as string;
  expect(
    await attack(
      "select zeroblob(2000000000)",
      `${many(100_000)} select group_concat(printf('%.100000c', 'x')) from c`,
      "select length(replace(hex(zeroblob(1000000)), '00', printf('%.10000c', 'x')))",
      `${many(1_000_000)} select hex(randomblob(100000)) from c`,
      `create table big as ${many(400)} select randomblob(100000) as x from c`,
      "select x from big order by x",
      `${many(8)} select replace(hex(zeroblob(900000)), '00', char(1)) from c`,
      "select json_group_array(hex(x)) from big",
    ),
  ).toEqual([
    tooBig,
    tooBig,
    tooBig,
    tooMany,
    0,
    tooMany,
    tooMany,
    expect.stringMatching(/^D1_ERROR: /) as string,
  ]);
});

it("recursion is limited", async () => {
  const answers = await attack(
    "create table r (x)",
    "create trigger tr after insert on r begin insert into r values (new.x + 1); end",
    "pragma recursive_triggers = on",
    "insert into r values (1)",
    "create view v as select * from v",
    "select * from v",
    `select ${"(".repeat(5000)}1${")".repeat(5000)}`,
    `select json('${"[".repeat(40_000)}${"]".repeat(40_000)}')`,
    "create virtual table f using fts5(x)",
    `insert into f ${many(500)} select printf('%.1000c', 'a') || ' ' || x from c`,
    `select count(*) from f where f match '${"a* OR ".repeat(4000)}a*'`,
    `select count(*) from f where f match '${"(".repeat(3000)}a${")".repeat(3000)}'`,
  );
  const refused = answers.map((each) => typeof each === "string");
  expect(answers[3]).toBe("D1_ERROR: triggers nested too deep: SQLITE_ERROR");
  expect(refused).toEqual([0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1].map(Boolean));
});

/** Imports a text. Returns its error, if there is one. */
async function importText(path: string, text: string | Uint8Array): Promise<string | undefined> {
  const etag = createHash("md5").update(text).digest("hex");
  const { result } = (await hosting.call("POST", `${path}/import`, { action: "init", etag })).body;
  const { filename, upload_url } = result as { filename: string; upload_url: string };
  expect((await fetch(upload_url, { method: "PUT", body: text })).status).toBe(200);
  let { body } = await hosting.call("POST", `${path}/import`, { action: "ingest", etag, filename });
  while (body.result.status === "active") {
    const current_bookmark = body.result.at_bookmark as string;
    ({ body } = await hosting.call("POST", `${path}/import`, { action: "poll", current_bookmark }));
  }
  return body.result.error as string | undefined;
}

it("a hostile file changes nothing, and its database answers after it", async () => {
  const path = await newDatabase(hosting, "imported");
  const transaction = /^To execute a transaction, please use/;
  const files: [string | Uint8Array, RegExp | undefined][] = [
    ["create table t (x); attach 'x.db' as y;", /^not authorized: SQLITE_AUTH$/],
    ["begin transaction; create table t (x); commit;", transaction],
    [
      "pragma writable_schema = on; create table t (x); insert into sqlite_schema values (1, 2, 3, 4, 5);",
      /^not authorized: SQLITE_AUTH$/,
    ],
    [
      `create table t (x); insert into t values ('${"x".repeat(200_000)}`,
      /^statement too long: SQLITE_TOOBIG$/,
    ],
    ["create table t (x); insert into t values ('open", /unrecognized token/],
    ["-- nothing\n".repeat(5_000), /^No SQL statements detected\.$/],
    [`create table t (x); ${";".repeat(100_000)} select x from nowhere;`, /^no such table: nowhere/],
    [
      Buffer.from("637265617465207461626c652074202878293b20ff00fe3b", "hex"),
      /^Expected a file of UTF-8 text$/,
    ],
    [
      `create table t (x); insert into t ${endless} select x from c;`,
      /^D1 DB exceeded its CPU time limit and was reset\.$/,
    ],
    [`create table good (x); ${"insert into good values (1);".repeat(5000)}`, undefined],
  ];
  await besideNeighbour(async () => {
    for (const [text, expected] of files) {
      const error = await importText(path, text);
      if (expected === undefined) expect(error).toBeUndefined();
      else expect(error).toMatch(expected);
      const tables = "select name from sqlite_schema where name not like '\\_cf\\_%' escape '\\'";
      expect(await run(hosting, "imported", tables)).toEqual([expected === undefined ? 1 : 0]);
    }
  });
});

it("an export while others write is one state of the database", async () => {
  const path = await newDatabase(hosting, "exported");
  const create = [
    "create table a (x)",
    "create table b (x)",
    `insert into a ${many(3000)} select hex(randomblob(500)) from c`,
  ];
  const both = "create trigger both after insert on a begin insert into b values (new.x); end";
  expect(await run(hosting, "exported", ...create, both)).toEqual([0, 0, 0, 0]);
  const over = new AbortController();
  const written: unknown[] = [];
  const write = async (): Promise<void> => {
    while (!over.signal.aborted)
      written.push(...(await run(hosting, "exported", "insert into a values ('new')")));
  };
  const writing = write();
  let before = 0;
  for (let i = 0; i < 3; i++) {
    await expect.poll(() => written.length).toBeGreaterThan(before);
    let { body } = await hosting.call("POST", `${path}/export`, { output_format: "polling" });
    while (body.result.status === "active")
      ({ body } = await hosting.call("POST", `${path}/export`, {
        output_format: "polling",
        current_bookmark: body.result.at_bookmark as string,
      }));
    const dump = await (
      await fetch((body.result as { result: { signed_url: string } }).result.signed_url)
    ).text();
    const count = (table: string): number =>
      dump.split(`INSERT INTO "${table}" ("x") VALUES('new');`).length - 1;
    expect(count("a")).toBe(count("b"));
    expect(count("a")).toBeGreaterThanOrEqual(before);
    before = written.length;
  }
  over.abort();
  await writing;
  expect(new Set(written)).toEqual(new Set([0]));
});
