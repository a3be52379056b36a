import { chmodSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { startTestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { Project } from "./harness.ts";
import { useProject } from "./use-project.ts";

/** Unmodified wrangler manages databases, and deploys a script that uses one. */
const used = useProject();
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
afterAll(() => rmSync(folder, { recursive: true }));
const timeout = 300_000;

const d1 = async (...args: string[]): Promise<string> => used.project.run(["d1", ...args]);
const source = `export default { async fetch(request: Request, env: any) {
  const { results } = await env.DB.prepare("select name from people where id > ? order by id").bind(0).all();
  return Response.json(results);
} };`;

it(
  "creates a database, runs commands, files and migrations, and exports it",
  async () => {
    expect(await d1("create", "people", "--location", "weur")).toContain("Successfully created DB 'people'");
    const listed = await used.server.call("GET", `/accounts/${used.server.ready.account_id}/d1/database`);
    const { uuid } = (listed.body.result as { uuid: string }[])[0]!;
    const database = { binding: "DB", database_name: "people", database_id: uuid };
    used.project.write({
      "wrangler.json": {
        name: "people",
        main: "index.ts",
        compatibility_date: "2026-01-01",
        d1_databases: [database],
      },
      "index.ts": source,
      "migrations/0001_people.sql":
        "create table people (id integer primary key, name text);\ncreate trigger log after insert on people begin select 1; end;\n",
      "names.sql":
        "insert into people (name) values ('one; two');\ninsert into people (name) values ('three');\n",
      "bad.sql": "insert into people (name) values ('nobody'); insert into nowhere values (1);",
    });
    expect(await d1("migrations", "apply", "people", "--remote")).toContain("0001_people.sql");
    expect(await d1("migrations", "apply", "people", "--remote")).toContain("No migrations to apply");
    expect(await d1("execute", "people", "--remote", "--yes", "--file", "names.sql")).toContain(
      "Executed 2 queries",
    );
    const bad = await used.project.attempt([
      "d1",
      "execute",
      "people",
      "--remote",
      "--yes",
      "--file",
      "bad.sql",
    ]);
    expect(bad.output).toContain("no such table: nowhere: SQLITE_ERROR");
    const results = await d1(
      "execute",
      "people",
      "--remote",
      "--json",
      "--command",
      "select 1 as a; select count(*) as n from people",
    );
    expect(JSON.parse(results)).toMatchObject([{ results: [{ a: 1 }] }, { results: [{ n: 2 }] }]);
    await d1("export", "people", "--remote", "--output", "dump.sql");
    const dump = readFileSync(join(used.project.folder, "dump.sql"), "utf8");
    expect(dump).toContain(`INSERT INTO "people" ("id","name") VALUES(1,'one; two');`);
    expect(dump).toMatch(/^PRAGMA defer_foreign_keys=TRUE;\nCREATE TABLE/);
    expect(dump).toContain("CREATE TRIGGER log");
    await used.project.run(["deploy"]);
    expect(JSON.parse((await ask(used.server, "people")).body)).toEqual([
      { name: "one; two" },
      { name: "three" },
    ]);
  },
  timeout,
);

it(
  "shows a database, refuses time travel by name, and deletes the database",
  async () => {
    const info = await d1("info", "people");
    expect(info).toContain("num_tables");
    const figures = JSON.parse(await d1("info", "people", "--json")) as Record<string, number>;
    // Of the imports and queries above.
    for (const name of ["read_queries_24h", "write_queries_24h", "rows_read_24h", "rows_written_24h"])
      expect([name, figures[name]! > 0]).toEqual([name, true]);
    expect(await d1("list")).toContain("people");
    const restore = ["d1", "time-travel", "restore", "people", "--bookmark", `0-0-0-${"0".repeat(32)}`];
    expect((await used.project.attempt(restore)).output).toContain(
      "Time travel is not part of this installation",
    );
    expect(await d1("delete", "people", "-y")).toContain("Deleted 'people' successfully");
    expect(await d1("list", "--json")).not.toContain("people");
  },
  timeout,
);

it(
  "restores a database to a bookmark and to a time, and undoes it",
  async () => {
    const server = await startTestServer({
      ephemeral: false,
      dataDir: join(folder, "data"),
      backupFolder: join(folder, "log"),
      objectLog: "1s",
    });
    const project = new Project(server);
    try {
      const run = async (...args: string[]): Promise<string> => project.run(["d1", ...args]);
      const query = async (command: string): Promise<string> =>
        run("execute", "shop", "--remote", "--json", "--command", command);
      const travel = async (...args: string[]): Promise<Record<string, string>> =>
        JSON.parse(await run("time-travel", ...args, "--json")) as Record<string, string>;
      await run("create", "shop");
      await query("create table t (n int); insert into t values (1)");
      const { bookmark } = await travel("info", "shop");
      const time = new Date(Date.now() + 1).toISOString();
      await new Promise((resolve) => setTimeout(resolve, 5)); // the clock goes on
      await query("insert into t values (2)");
      const restored = await travel("restore", "shop", "--bookmark", bookmark!);
      expect(JSON.parse(await query("select count(*) as n from t"))).toMatchObject([{ results: [{ n: 1 }] }]);
      await travel("restore", "shop", "--bookmark", restored["previous_bookmark"]!);
      expect(JSON.parse(await query("select count(*) as n from t"))).toMatchObject([{ results: [{ n: 2 }] }]);
      await travel("restore", "shop", "--timestamp", time);
      expect(JSON.parse(await query("select count(*) as n from t"))).toMatchObject([{ results: [{ n: 1 }] }]);
    } finally {
      project.remove();
      await server.close(1000);
    }
  },
  timeout,
);
