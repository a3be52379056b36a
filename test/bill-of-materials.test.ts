import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { billOfMaterials, lock, nameOf, productionPaths } from "../scripts/generate/bill-of-materials.ts";

interface Component {
  name: string;
  version: string;
  licenses: { expression: string }[];
  components?: Component[];
}
const text = readFileSync("bom.cdx.json", "utf8");
const bill = JSON.parse(text) as { components: Component[] };
const components = bill.components.flatMap((each) => [each, ...(each.components ?? [])]);

/** Licences that allow distribution together with this program. LGPL and MPL: as separate files or packages. */
const allowed = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "FTL",
  "HPND-sell-variant",
  "IJG",
  "ISC",
  "LGPL-3.0-or-later",
  "libpng-2.0",
  "libtiff",
  "MIT",
  "MPL-1.1",
  "Unlicense",
  "Zlib",
]);
/** Development packages are not distributed. */
const allowedForDevelopment = new Set([...allowed, "CC0-1.0", "MPL-2.0", "PSF-2.0", "Python-2.0"]);
/** Whether every AND part of an SPDX expression has an allowed choice. */
const isAllowed = (expression: string, among: ReadonlySet<string>): boolean =>
  expression.split(" AND ").every((part) =>
    part
      .replace(/[()]/g, "")
      .split(" OR ")
      .some((license) => among.has(license)),
  );

it("the bill of materials is current, and names no host", () => {
  expect(text).toBe(billOfMaterials());
  expect(text).not.toMatch(/https?:|registry/);
});

it("holds every package that is used at run time, with its installed version and license", () => {
  const installed = [...productionPaths().keys()].filter((path) => existsSync(`${path}/package.json`));
  expect(installed.length).toBeGreaterThan(80);
  const ofFile = (path: string): [string, string, string] => {
    const { version, license } = JSON.parse(readFileSync(`${path}/package.json`, "utf8")) as Record<
      string,
      string
    >;
    return [nameOf(path), version!, license!];
  };
  const listed = bill.components.map(({ name, version, licenses }) =>
    [name, version, licenses[0]!.expression].join(" "),
  );
  expect(installed.map((path) => ofFile(path).join(" ")).filter((each) => !listed.includes(each))).toEqual(
    [],
  );
  const names = components.map(({ name }) => name);
  for (const program of ["node", "workerd", "sharp", "vips", "webp", "pg"]) expect(names).toContain(program);
});

it("holds only licenses that are allowed, and development packages have allowed ones too", () => {
  const others = components.filter(({ licenses }) => !isAllowed(licenses[0]!.expression, allowed));
  expect(others.map(({ name, licenses }) => `${name}: ${licenses[0]!.expression}`)).toEqual([]);
  const development = Object.entries(lock.packages).filter(
    ([path, { license }]) => path !== "" && !isAllowed(license ?? "none", allowedForDevelopment),
  );
  expect(development.map(([path, { license }]) => `${path}: ${license}`)).toEqual([]);
  expect(isAllowed("MIT AND GPL-3.0-only", allowed)).toBe(false);
  expect(isAllowed("(BSD-3-Clause OR GPL-2.0)", allowed)).toBe(true);
});
