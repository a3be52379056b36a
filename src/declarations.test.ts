import { globSync } from "node:fs";
import { expect, it } from "vitest";
import { capabilities } from "./capabilities.ts";
import type { Capability } from "./capability.ts";
import type { Declaration } from "./declaration.ts";
import { declarations } from "./declarations.ts";
import { leftOutTables, postgresTables, tablesOf } from "./platform/storage/backup/model.ts";
import { currentSchema, schemaVersions } from "./platform/storage/migrations/migrate.ts";
import type { Setting } from "./platform/config/setting.ts";

const all: readonly Declaration[] = declarations;
const twice = (values: readonly string[]): string[] =>
  values.filter((value, index) => values.indexOf(value) !== index);

it("each file declaration.ts is the declaration of one capability in the list", async () => {
  const files = globSync("src/**/declaration.ts").filter((file) => file !== "src/declaration.ts");
  const declared = capabilities.flatMap(({ declares }: Capability) => declares ?? []);
  const inFiles = await Promise.all(
    files.map(
      async (file) =>
        ((await import(/* @vite-ignore */ `../${file}`)) as { declaration: Declaration }).declaration,
    ),
  );
  expect(files.length).toBeGreaterThan(15);
  expect(declared.length).toBe(files.length);
  expect(new Set(declared)).toEqual(new Set(inFiles));
  expect(new Set(all)).toEqual(new Set(inFiles));
});

it("no two capabilities declare the same setting, flag or variable", () => {
  const settings = all.flatMap((each) => Object.entries<Setting>(each.settings));
  expect(twice(settings.map(([name]) => name))).toEqual([]);
  expect(twice(settings.map(([, { flag }]) => flag))).toEqual([]);
  expect(twice(settings.map(([, { env }]) => env))).toEqual([]);
});

it("the flag, the variable and the name in code of a setting are the same words", () => {
  for (const [name, { flag, env }] of all.flatMap((each) => Object.entries<Setting>(each.settings))) {
    expect(flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())).toBe(name);
    expect(env).toBe(`SELVEDGE_${flag.toUpperCase().replaceAll("-", "_")}`);
  }
});

it("the migrations of all capabilities have different numbers, which order them", () => {
  const names = all.flatMap(({ migrations }) => Object.keys(migrations));
  expect(names.filter((name) => !/^\d{4}-[a-z\d]+(-[a-z\d]+)*$/.test(name))).toEqual([]);
  expect(twice(names.map((name) => name.slice(0, 4)))).toEqual([]);
  expect(schemaVersions).toEqual(names.toSorted());
});

it("no two capabilities declare the same kind of change", () => {
  expect(twice(all.flatMap(({ changes }) => changes))).toEqual([]);
});

it("each table of the schema is declared by one capability", async () => {
  const declared = all.flatMap(({ tables }) => Object.keys(tables));
  expect(twice(declared)).toEqual([]);
  const stored = (await tablesOf(currentSchema)).map(({ name }) => name);
  const known = [...leftOutTables.filter((name) => declared.includes(name)), ...stored];
  expect(declared.filter((name) => !known.includes(name) && !postgresTables.includes(name))).toEqual([]);
  expect(stored.filter((name) => !declared.includes(name))).toEqual([]);
});
