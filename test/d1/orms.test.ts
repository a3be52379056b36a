import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { build as bundle, type Plugin } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Scripts that use databases through Drizzle and Kysely, unmodified from npm. */
const folder = join(import.meta.dirname, "orms");

/** A script has no files, so the ones that Drizzle's migrator reads are part of the bundle. */
const migrationFiles: Plugin = {
  name: "migration files",
  setup(build) {
    build.onResolve({ filter: /^(?:node:)?fs$/ }, () => ({ path: "fs", namespace: "migrations" }));
    build.onLoad({ filter: /.*/, namespace: "migrations" }, () => {
      const names = readdirSync(join(folder, "migrations"), { recursive: true, encoding: "utf8" });
      const files = names.filter((name) => statSync(join(folder, "migrations", name)).isFile());
      const texts = files.map((name) => [
        `migrations/${name}`,
        readFileSync(join(folder, "migrations", name), "utf8"),
      ]);
      return {
        contents: `const files = new Map(${JSON.stringify(texts)});
          const readFileSync = (path) => { if (!files.has(path)) throw new Error("no file " + path); return files.get(path); };
          export default { readFileSync, existsSync: (path) => files.has(path) };`,
      };
    });
  },
};

let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
  for (const name of ["drizzle", "kysely"]) {
    const { outputFiles } = await bundle({
      entryPoints: [join(folder, `${name}.js`)],
      bundle: true,
      write: false,
      format: "esm",
      platform: "neutral",
      mainFields: ["module", "main"],
      external: ["node:*"],
      plugins: [migrationFiles],
      banner: { js: `import { Buffer } from "node:buffer";` },
    });
    const { body } = await hosting.call("POST", `/accounts/${hosting.account}/d1/database`, { name });
    const bindings = [{ type: "d1", name: "DB", id: (body.result as { uuid: string }).uuid }];
    const metadata = { compatibility_flags: ["nodejs_compat"] };
    await hosting.deploy(name, { code: outputFiles[0]!.text, bindings, metadata });
  }
});
afterAll(async () => hosting.close(0));

async function ask<T>(script: string, task: string): Promise<T> {
  const { status, body } = await hosting.ask(script, `/${task}`);
  if (status !== 200) throw new Error(body);
  return JSON.parse(body) as T;
}

it("Drizzle migrates a database once, and its queries work", async () => {
  expect(await ask("drizzle", "migrate")).toEqual([[2]]);
  expect(await ask("drizzle", "migrate")).toEqual([[2]]);
  expect(await ask("drizzle", "insert")).toEqual([
    {
      id: 1,
      name: "first",
      since: "1970-01-01T00:00:01.000Z",
      isActive: true,
      settings: { tags: ["a; b", "ü"] },
    },
    { id: 2, name: "second", since: "1970-01-01T00:00:02.000Z", isActive: false, settings: null },
  ]);
  expect(await ask("drizzle", "batch")).toEqual([[{ id: 1 }], [{ total: "3.5" }]]);
  const [failed, customers] = await ask<[string, number]>("drizzle", "rollback");
  expect(failed).toContain("UNIQUE constraint failed: customers.name");
  expect(customers).toBe(2);
  expect(await ask("drizzle", "join")).toEqual([
    { name: "first", orders: 1 },
    { name: "second", orders: 1 },
  ]);
  expect(await ask("drizzle", "relations")).toMatchObject([
    { name: "first", orders: [{ amount: 1.5 }] },
    { name: "second", orders: [{ amount: 2, note: null }] },
  ]);
  expect(await ask("drizzle", "upsert")).toEqual([{ id: 1, since: "1970-01-01T00:00:03.000Z" }]);
  expect(await ask("drizzle", "update")).toBe(2);
  expect(await ask("drizzle", "prepared")).toEqual(["seen", null]);
  expect(await ask("drizzle", "remove")).toBe(1);
});

it("queries of Kysely work; its transactions and its migrator are refused, as by the public service", async () => {
  await ask("kysely", "create");
  expect(await ask("kysely", "insert")).toEqual(["1", "1", [{ id: 2, name: "second", age: null }]]);
  expect(await ask("kysely", "join")).toEqual([
    { name: "first", pet: "pet" },
    { name: "second", pet: null },
  ]);
  expect(await ask("kysely", "update")).toBe("1");
  expect(await ask("kysely", "window")).toEqual([
    { n: 1, name: "second" },
    { n: 2, name: "first" },
  ]);
  expect(await ask("kysely", "transaction")).toBe("Transactions are not supported yet.");
  // The migrator looks at all tables, and one of them is the hidden table, which the public service has too.
  expect(await ask("kysely", "migrate")).toBe("Error: D1_ERROR: not authorized: SQLITE_AUTH");
  expect(await ask("kysely", "remove")).toBe("1");
});
