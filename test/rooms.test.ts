import { dirname, join, normalize } from "node:path";
import { expect, it } from "vitest";
import { imports, product, sources, text } from "./helpers/sources.ts";

/** The rooms of src/, each of which imports only from itself and from rooms before it. ARCHITECTURE.md describes them. */
const rooms = [
  "testkit", // runs on the Node of the importing program
  "platform",
  "rules",
  "control",
  "dns",
  "edge",
  "sandbox",
  "workers",
  "products",
  "test-api",
  "wiring",
  "cli",
];
/** Files directly in src/ put the rooms together; main.ts starts the command line. */
const roomOf = (file: string): string => (file.split("/").length > 2 ? file.split("/")[1]! : "wiring");

/** The interface of all capabilities, and that of their static parts. */
const interfaces = ["src/capability.ts", "src/declaration.ts"];
/** The modules that are made of what all capabilities declare. */
const composed = [
  "src/platform/config/settings.ts",
  "src/platform/storage/migrations/migrate.ts",
  "src/platform/storage/schema.ts",
  "src/workers/bindings.ts",
];

it("a room imports only from itself and from the rooms before it", () => {
  const upward = product.flatMap((file) =>
    imports(file)
      .filter((imported) => imported.startsWith("src/"))
      .filter((imported) => !interfaces.includes(imported) && file !== "src/main.ts")
      .filter((imported) => !(imported === "src/declarations.ts" && composed.includes(file)))
      .filter((imported) => rooms.indexOf(roomOf(imported)) > rooms.indexOf(roomOf(file)))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(upward).toEqual([]);
});

it.each(interfaces)("%s imports types only, so that every room can import it", (file) => {
  const statements = text(file).match(/^import .*$/gm) ?? [];
  expect(statements.length).toBeGreaterThan(0);
  expect(statements.filter((statement) => !statement.startsWith("import type "))).toEqual([]);
});

it("the declarations of capabilities load nothing but the forms of settings", () => {
  const loaded = new Set<string>();
  const load = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    // Types are not loaded, and migrations only for a database that needs them.
    for (const [, path] of text(file).matchAll(/^import (?!type )[^;"]*\bfrom "(\.[^"]+)"/gm))
      load(normalize(join(dirname(file), path!)));
  };
  load("src/declarations.ts");
  expect(loaded.size).toBeGreaterThan(20);
  const isLight = (file: string): boolean =>
    /^src\/(declarations?|.*\/declaration|platform\/bytes|platform\/util\/ids)\.ts$/.test(file) ||
    /^src\/platform\/config\/(forms|setting|settings-\w+|plan-names)\.ts$/.test(file);
  expect([...loaded].filter((file) => !isLight(file))).toEqual([]);
});

it("every folder belongs to a room", () => {
  expect(product.map(roomOf).filter((room) => !rooms.includes(room))).toEqual([]);
});

it("a folder holds at most twenty source files", () => {
  const folders = Map.groupBy(
    sources.filter((file) => file.startsWith("src/") && !file.endsWith(".test.ts")),
    (file) => dirname(file),
  );
  const crowded = [...folders].filter(([, files]) => files.length > 20).map(([folder]) => folder);
  expect(crowded).toEqual([]);
});

it("two folders do not import each other", () => {
  const arrows = new Set(
    product.flatMap((file) => imports(file).map((imported) => `${dirname(file)} ${dirname(imported)}`)),
  );
  const mutual = [...arrows].filter((arrow) => {
    const [from, to] = arrow.split(" ") as [string, string];
    const isNested = `${from}/`.startsWith(`${to}/`) || `${to}/`.startsWith(`${from}/`);
    return from < to && !isNested && arrows.has(`${to} ${from}`);
  });
  expect(mutual).toEqual([]);
});
