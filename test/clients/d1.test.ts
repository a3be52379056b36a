import { createHash } from "node:crypto";
import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** Databases through the official client. */
let server: TestServer;
let client: Cloudflare;
let account_id: string;
let id: string;

beforeAll(async () => {
  server = await startTestServer();
  client = server.client;
  account_id = server.ready.account_id;
  id = (await client.d1.database.create({ account_id, name: "shop", primary_location_hint: "weur" })).uuid!;
});
afterAll(async () => server.close(0));

const query = async (sql: string, params?: string[]) =>
  (await client.d1.database.query(id, { account_id, sql, ...(params && { params }) })).result;
const path = () => `/accounts/${account_id}/d1/database/${id}`;

describe("databases", () => {
  it("are created once for a name, listed, found by name and changed", async () => {
    const again = client.d1.database.create({ account_id, name: "shop" });
    await expect(again).rejects.toMatchObject({ status: 400, errors: [{ code: 7502 }] });
    await client.d1.database.create({ account_id, name: "other" });
    const { result } = await client.d1.database.list({ account_id, per_page: 10 });
    expect(new Set(result.map(({ name }) => name))).toEqual(new Set(["other", "shop"]));
    expect((await client.d1.database.list({ account_id, name: "sho" })).result).toHaveLength(1);
    const found = await server.call("GET", `/accounts/${account_id}/d1/database/shop?fields=uuid,name`);
    expect(found.body.result).toEqual({ uuid: id, name: "shop" });
    const fields = ["name", "read_replication"] as const;
    expect(await client.d1.database.get(id, { account_id, fields: [...fields] })).toEqual({
      name: "shop",
      read_replication: { mode: "disabled" },
    });
    const unknown = await server.call("GET", `/accounts/${account_id}/d1/database/shop?fields=uuid,owner`);
    expect(unknown.body.errors).toMatchObject([{ source: { pointer: "/query/fields/1" } }]);
    const mode = { read_replication: { mode: "auto" as const } };
    expect(await client.d1.database.update(id, { account_id, ...mode })).toMatchObject(mode);
    expect(await client.d1.database.edit(id, { account_id })).toMatchObject(mode);
    const shown = { uuid: id, version: "production", running_in_region: "WEUR", num_tables: 0, ...mode };
    expect(await client.d1.database.get(id, { account_id })).toMatchObject(shown);
  });

  it("answer with many rows", async () => {
    const many =
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) select i from n";
    const [found] = await query(many);
    expect(found!.results).toHaveLength(50_000);
    expect(found!.results![49_999]).toEqual({ i: 50_000 });
  });

  it("need the permission of D1", async () => {
    const resources = { [`com.cloudflare.api.account.${account_id}`]: "*" };
    const reader = await server.clientWith("D1 Read", resources);
    expect((await reader.d1.database.get(id, { account_id })).uuid).toBe(id);
    const refused = reader.d1.database.query(id, { account_id, sql: "select 1" });
    await expect(refused).rejects.toMatchObject({ status: 403 });
    const writer = await server.clientWith("D1 Write", resources);
    expect(
      (await writer.d1.database.query(id, { account_id, sql: "select 1 as x" })).result[0]?.results,
    ).toEqual([{ x: 1 }]);
  });
});

describe("queries", () => {
  it("have a result for each statement, and values for each parameter", async () => {
    await query("create table t (a integer, b text)");
    const results = await query("insert into t values (?, ?); select * from t where a = ?", [
      "1",
      "one; two",
      "1",
    ]);
    expect(results).toMatchObject([
      { success: true, results: [], meta: { changes: 1, rows_written: 1 } },
      { success: true, results: [{ a: 1, b: "one; two" }], meta: { rows_read: 1 } },
    ]);
    const raw = await client.d1.database.raw(id, { account_id, sql: "select a, b from t" });
    expect(raw.result).toMatchObject([{ results: { columns: ["a", "b"], rows: [[1, "one; two"]] } }]);
    const batch = [
      { sql: "insert into t values (2, ?)", params: ["two"] },
      { sql: "select count(*) as n from t" },
    ];
    expect((await client.d1.database.query(id, { account_id, batch })).result[1]?.results).toEqual([
      { n: 2 },
    ]);
  });

  it("are limited in number, and their answers in memory", async () => {
    const query = async (sql: string): Promise<unknown> =>
      client.d1.database.query(id, { account_id, sql }).then(
        () => "answered",
        (error: { errors: { message: string }[] }) => error.errors[0]!.message,
      );
    expect(await query("select 1;".repeat(10_001))).toMatch("at most 10000 statements");
    expect(await query("create trigger x after insert on t begin " + "select 1;".repeat(9000))).toMatch(
      "incomplete input",
    );
    const numbers = (limit: number, name: string): string =>
      `with recursive c(x) as (select 1 union all select x + 1 from c limit ${limit}) select 1 as ${name} from c`;
    expect(await query(numbers(1_000_000, "a"))).toMatch("take more than 32 MiB");
    expect(await query(numbers(300_000, "a".repeat(100)))).toMatch("take more than 32 MiB");
    expect(await query(numbers(100_000, "a"))).toBe("answered");
  });

  it("are one transaction, and report errors of SQL with their text", async () => {
    const failed = query("delete from t; insert into missing values (1)");
    await expect(failed).rejects.toMatchObject({
      status: 400,
      errors: [{ code: 7500, message: "no such table: missing: SQLITE_ERROR" }],
    });
    expect((await query("select count(*) as n from t"))[0]?.results).toEqual([{ n: 2 }]);
    expect((await server.call("POST", `${path()}/query`, {})).body.errors).toMatchObject([{ code: 7400 }]);
  });
});

describe("the figures that wrangler asks for", () => {
  const ask = async (databaseId: string, more: object = {}): Promise<unknown> =>
    client.post("/graphql", {
      body: {
        query: `query getD1MetricsOverviewQuery($accountTag: string, $filter: ZoneWorkersRequestsFilter_InputObject) {
          viewer { accounts(filter: {accountTag: $accountTag}) {
            d1AnalyticsAdaptiveGroups(limit: 10000, filter: $filter) {
              sum { readQueries writeQueries rowsRead rowsWritten } dimensions { datetimeHour }
        } } } }`,
        operationName: "getD1MetricsOverviewQuery",
        variables: {
          accountTag: account_id,
          filter: {
            AND: [
              {
                datetimeHour_geq: new Date(Date.now() - 86_400_000).toISOString(),
                datetimeHour_leq: new Date().toISOString(),
                databaseId,
              },
            ],
          },
        },
        ...more,
      },
    });
  interface Answer {
    data: { viewer: { accounts: { d1AnalyticsAdaptiveGroups: { sum: Record<string, number> }[] }[] } };
  }
  const figures = async (databaseId: string): Promise<Record<string, number>> => {
    const { data } = (await ask(databaseId)) as Answer;
    const all: Record<string, number> = {};
    // A test may run while the hour changes.
    for (const { sum } of data.viewer.accounts[0]!.d1AnalyticsAdaptiveGroups)
      for (const [name, value] of Object.entries(sum)) all[name] = (all[name] ?? 0) + value;
    return all;
  };

  it("are those of the database's queries, before and after they are stored", async () => {
    const counted = (await client.d1.database.create({ account_id, name: "counted" })).uuid!;
    const run = async (sql: string): Promise<unknown> =>
      client.d1.database.query(counted, { account_id, sql });
    expect(await figures(counted)).toEqual({});
    await run("create table t (a integer)");
    const before = await figures(counted);
    await run("insert into t values (1), (2), (3); select * from t; select a from t where a > 2");
    const wanted = {
      readQueries: before["readQueries"]! + 2,
      writeQueries: before["writeQueries"]! + 1,
      rowsRead: before["rowsRead"]! + 6,
      rowsWritten: before["rowsWritten"]! + 3,
    };
    expect(await figures(counted)).toEqual(wanted);
    const { d1Usage, d1Databases } = server.services;
    await d1Usage.store((database) => d1Databases.has(database));
    expect(await figures(counted)).toEqual(wanted);
    await run("select 1");
    await d1Usage.store((database) => d1Databases.has(database));
    expect(await figures(counted)).toEqual({ ...wanted, readQueries: wanted.readQueries + 1 });
    await client.d1.database.delete(counted, { account_id });
    expect(await figures(counted)).toEqual({});
  });

  it("need the permission of D1, and other queries are refused", async () => {
    const resources = { [`com.cloudflare.api.account.${account_id}`]: "*" };
    const other = await server.clientWith("Queues Read", resources);
    const body = { query: "{ viewer { accounts { d1AnalyticsAdaptiveGroups { sum { rowsRead } } } } }" };
    await expect(other.post("/graphql", { body })).rejects.toMatchObject({ status: 400 });
    const asked = ask(id, {
      query: "{ viewer { accounts { r2StorageAdaptiveGroups { max { objectCount } } } } }",
    });
    await expect(asked).rejects.toMatchObject({ status: 404, errors: [{ code: 7010 }] });
    const more = ask(id, { query: `${body.query.slice(0, -8)} queryBatchTimeMs } } } }` });
    await expect(more).rejects.toMatchObject({ status: 404, errors: [{ code: 7010 }] });
    const variables = {
      accountTag: "f".repeat(32),
      filter: { AND: [{ datetimeHour_geq: "2026-01-01", datetimeHour_leq: "2026-01-02", databaseId: id }] },
    };
    await expect(ask(id, { variables })).rejects.toMatchObject({ status: 403 });
  });
});

describe("imports and exports", () => {
  const put = async (url: string, body: string) => fetch(url, { method: "PUT", body });
  const md5 = (text: string): string => createHash("md5").update(text).digest("hex");

  it("take a dump to another database unchanged", async () => {
    await query(
      `create table kept (id integer primary key autoincrement, data blob, note text unique);
       insert into kept (data, note) values (x'00ff', 'it''s; "quoted"'), (null, char(10) || 'line'), (1.5, null);
       create index by_note on kept (note); create view seen as select note from kept;
       create table many as with recursive c(x) as (select 1 union all select x + 1 from c where x < 5000)
         select x, printf('%.200c', 'm') as text from c`,
    );
    const done = await client.d1.database.export(id, { account_id, output_format: "polling" });
    expect(done).toMatchObject({ success: true, status: "complete" });
    const dump = await (await fetch(done.result!.signed_url!)).text();
    const copy = (await client.d1.database.create({ account_id, name: "copy" })).uuid!;
    const etag = md5(dump);
    const begun = await client.d1.database.import(copy, { account_id, action: "init", etag });
    expect((await put(begun.upload_url!, `${dump} `)).status).toBe(400);
    const taken = await put(begun.upload_url!, dump);
    expect([taken.status, taken.headers.get("etag")]).toEqual([200, `"${etag}"`]);
    const filename = begun.filename!;
    const ended = await client.d1.database.import(copy, { account_id, action: "ingest", etag, filename });
    expect(ended).toMatchObject({
      success: true,
      status: "complete",
      result: { num_queries: expect.any(Number) as number },
    });
    const rows = async (database: string) =>
      (
        await client.d1.database.raw(database, {
          account_id,
          sql: "select * from kept; select * from seen; select * from t; select count(*), sum(x), max(length(text)) from many",
        })
      ).result.map(({ results }) => results);
    expect(await rows(copy)).toEqual(await rows(id));
    await client.d1.database.delete(copy, { account_id });
  });

  it("change nothing when a statement of the file fails", async () => {
    const text = "insert into t values (3, 'three'); insert into missing values (1);";
    const etag = md5(text);
    const begun = await client.d1.database.import(id, { account_id, action: "init", etag });
    await put(begun.upload_url!, text);
    const ended = await client.d1.database.import(id, {
      account_id,
      action: "ingest",
      etag,
      filename: begun.filename!,
    });
    expect(ended).toMatchObject({ status: "error", error: "no such table: missing: SQLITE_ERROR" });
    expect((await query("select count(*) as n from t"))[0]?.results).toEqual([{ n: 2 }]);
  });

  it("refuse foreign links, unknown files and unknown jobs", async () => {
    const transfers = `${server.ready.api}/accounts/${account_id}/d1/transfers`;
    expect((await put(`${transfers}/made-up?token=guessed`, "select 1")).status).toBe(401);
    expect((await fetch(`${transfers}/made-up?token=guessed`)).status).toBe(401);
    const etag = md5("never sent");
    const missing = client.d1.database.import(id, {
      account_id,
      action: "ingest",
      etag,
      filename: `${etag}.sql`,
    });
    await expect(missing).rejects.toMatchObject({ status: 404 });
    const unknown = client.d1.database.import(id, { account_id, action: "poll", current_bookmark: "none" });
    await expect(unknown).rejects.toMatchObject({ status: 404 });
  });
});

it("returns the present bookmark, and refuses time travel by name", async () => {
  const { bookmark } = await client.d1.database.timeTravel.getBookmark(id, { account_id });
  await query("insert into t values (9, 'nine')");
  const later = await client.d1.database.timeTravel.getBookmark(id, { account_id });
  expect(later.bookmark! > bookmark!).toBe(true);
  const message = /^Time travel is not part of this installation/;
  const refused = { status: 400, errors: [{ message: expect.stringMatching(message) as string }] };
  await expect(
    client.d1.database.timeTravel.restore(id, { account_id, bookmark: bookmark! }),
  ).rejects.toMatchObject(refused);
  const timestamp = "2026-01-01T00:00:00Z";
  await expect(
    client.d1.database.timeTravel.getBookmark(id, { account_id, timestamp }),
  ).rejects.toMatchObject(refused);
});
