import { readFileSync } from "node:fs";
import SwaggerParser from "@apidevtools/swagger-parser";
import { bundle, createConfig } from "@redocly/openapi-core";
import { expect, it } from "vitest";
import { permissionGroups } from "../src/control/access/permissions.ts";

/** The descriptions of the APIs are read by tools of others: two of them resolve and check them. openapi-typescript uses the second. */
const file = "openapi.json";

const testFile = "openapi-test.json";

it.each([
  [file, 100],
  [testFile, 20],
])("%s is a valid document for swagger-parser", async (ref, least) => {
  const api = await SwaggerParser.validate(ref);
  expect(Object.keys(api.paths ?? {}).length).toBeGreaterThan(least);
});

it.each([file, testFile])("%s has no unresolved reference for Redocly", async (ref) => {
  const { problems } = await bundle({ ref, config: await createConfig({}) });
  expect(problems.map(({ message, location }) => `${message} at ${location[0]?.pointer}`)).toEqual([]);
});

it("says which permission each operation needs, and on what", () => {
  const { paths } = JSON.parse(readFileSync(file, "utf8")) as {
    paths: Record<string, Record<string, { "x-permission": string | null; "x-scope": string }>>;
  };
  const keys = permissionGroups.map(({ key }): string => key);
  for (const operation of Object.values(paths).flatMap((each) => Object.values(each))) {
    const { "x-permission": permission, "x-scope": scope } = operation;
    if (scope === "caller" || scope === "own") expect(permission).toBeNull();
    else expect(keys).toContain(permission);
  }
});

it("describes each recursive schema under a name", () => {
  const text = readFileSync(file, "utf8");
  expect(text).not.toMatch(/"\$ref": "#"|\$defs|__schema/);
});
