import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { initialStateOf } from "./initial-state.ts";
import { lineOf } from "./line-of.ts";
import { readSeed } from "./seed.ts";

const folder = mkdtempSync(join(tmpdir(), "selvedge-seed-"));
afterAll(() => rmSync(folder, { recursive: true }));
const resources = (seed: string | object): Record<string, Record<string, unknown>[]> => {
  const text = typeof seed === "string" ? seed : JSON.stringify(seed, null, 2);
  const { resources: all } = readSeed(join(folder, "seed.json"), text).document;
  return Object.groupBy(
    all.map((resource): Record<string, unknown> => ({ ...resource })),
    ({ product }) => String(product),
  ) as Record<string, Record<string, unknown>[]>;
};

describe("the resources of a seed", () => {
  it("reads records from lines, bodies and a zone file", () => {
    writeFileSync(join(folder, "shop.zone"), "mail 300 IN MX 10 mx.shop.example.\n");
    const records = [
      "@ A 192.0.2.1",
      { type: "A", name: "api", content: "192.0.2.3", proxied: true },
      "www 60 A 192.0.2.2",
    ];
    const found = resources({ zones: { "shop.example": { records, zone_file: "shop.zone" } } });
    expect(found["dns_record"]!.map(({ key, zone }) => [key, zone])).toEqual([
      ["MX mail.shop.example 10 mx.shop.example", "shop.example"],
      ["A shop.example 192.0.2.1", "shop.example"],
      ["A www.shop.example 192.0.2.2", "shop.example"],
      ["A api.shop.example 192.0.2.3", "shop.example"],
    ]);
  });

  it("names modules by their paths from the folder of the main module, also if that is the seed's", () => {
    mkdirSync(join(folder, "lib"), { recursive: true });
    for (const file of ["index.js", "lib/vat.js"]) writeFileSync(join(folder, file), "export default {};");
    const found = resources({
      zones: { "shop.example": { snippets: { vat: "lib/vat.js" } } },
      scripts: { shop: { main: "index.js", modules: ["lib/vat.js"] } },
    });
    const names = (value: unknown): string[] =>
      (value as { modules: { name: string }[] }).modules.map(({ name }) => name);
    expect(names(found["script"]![0]!["value"])).toEqual(["index.js", "lib/vat.js"]);
    expect(names(found["snippet"]![0]!["value"])).toEqual(["vat.js"]);
  });

  it("reads modules, and values of keys, from files", () => {
    mkdirSync(join(folder, "code/lib"), { recursive: true });
    mkdirSync(join(folder, "prices/eu"), { recursive: true });
    writeFileSync(join(folder, "code/main.js"), "import './lib/tax.js'; export default {};");
    writeFileSync(join(folder, "code/lib/tax.js"), "export {};");
    writeFileSync(join(folder, "prices/eu/bread"), Buffer.from([0xff, 0]));
    const found = resources({
      scripts: { shop: { main: "code/main.js", modules: ["code/lib/tax.js"] } },
      kv: { prices: "prices", limits: { most: { eur: 10 }, name: "text" } },
    });
    const [script] = found["script"]!;
    expect(script!["value"]).toMatchObject({
      main_module: "main.js",
      modules: [{ name: "main.js" }, { name: "lib/tax.js" }],
    });
    expect(found["kv_value"]!.map(({ value }) => value)).toMatchObject([
      { namespace: "prices", key: "eu/bread", value: { base64: "/wA=" } },
      { namespace: "limits", key: "most", value: { text: '{"eur":10}' } },
      { namespace: "limits", key: "name", value: { text: "text" } },
    ]);
  });
});

describe("a mistake in a seed names its line", () => {
  it.each([
    ["an unknown part", '{\n  "zonez": {}\n}', /line 1: .*zonez/],
    ["a wrong type", '{\n  "kv": {\n    "prices": 3\n  }\n}', /line 3, kv\.prices: /],
    [
      "a line that is no record",
      '{ "zones": { "shop.example": {\n "records": [\n "www A 192.0.2.1",\n "api A home"\n] } } }',
      /line 4, zones\.shop\.example\.records\.1: .*home/,
    ],
    [
      "a body that is no record",
      '{ "zones": { "shop.example": { "records": [\n"www A 192.0.2.1",\n{ "type": "A", "name": "b", "content": "x" }] } } }',
      /line 3, zones\.shop\.example\.records\.1: /,
    ],
    [
      "a missing file",
      '{\n"scripts": {\n"shop": { "main": "none.js" } } }',
      /line 3, scripts\.shop: .*none\.js/,
    ],
    ["a file of another kind", '{ "scripts": {\n"shop": { "main": "shop.py" } } }', /line 2.*\.js.*shop\.py/],
  ])("%s", (_, text, message) => {
    expect(() => resources(text)).toThrow(message);
  });
});

it.each([
  ["seed.yaml", "zones: {}", "is YAML, which is not read"],
  ["seed.txt", "zones", "Expected a saved state, a file of selvedge import or a seed in JSON"],
  ["none.mjs", "export const seed = {};", "Expected a seed as the default export"],
  ["broken.ts", "export default {", "could not be loaded"],
  [
    "wrong.ts",
    "export default { zones: { 'shop.example': { recrods: [] } } } as object;",
    "wrong.ts, zones.shop",
  ],
])("the seed %s is refused", async (name, text, message) => {
  const file = join(folder, name);
  writeFileSync(file, text);
  await expect(initialStateOf(file)).rejects.toThrow(message);
});

it("finds lines by their path", () => {
  const text = '{ "a": [1,\n {"b\\"": "}"},\n [],\n "x"], "c": {\n "d": null } }';
  expect(
    [[], ["a", 0], ["a", 1, 'b"'], ["a", 2], ["a", 3], ["c"], ["c", "d"], ["c", "e"]].map((path) =>
      lineOf(text, path),
    ),
  ).toEqual([1, 1, 2, 3, 4, 4, 5, 4]);
});
