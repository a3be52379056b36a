import { dirname } from "node:path";
import { expect, it } from "vitest";
import { imports, product, text } from "./helpers/sources.ts";

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
  "wiring",
  "cli",
];
/** Files directly in src/ put the rooms together; main.ts starts the command line. */
const roomOf = (file: string): string => (file.split("/").length > 2 ? file.split("/")[1]! : "wiring");

it("a room imports only from itself and from the rooms before it", () => {
  const upward = product.flatMap((file) =>
    imports(file)
      .filter((imported) => imported.startsWith("src/"))
      // The interface of all capabilities, which imports types only.
      .filter((imported) => imported !== "src/capability.ts" && file !== "src/main.ts")
      .filter((imported) => rooms.indexOf(roomOf(imported)) > rooms.indexOf(roomOf(file)))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(upward).toEqual([]);
});

it("the interface of all capabilities imports types only, so that every room can import it", () => {
  const statements = text("src/capability.ts").match(/^import .*$/gm) ?? [];
  expect(statements.length).toBeGreaterThan(0);
  expect(statements.filter((statement) => !statement.startsWith("import type "))).toEqual([]);
});

it("every folder belongs to a room", () => {
  expect(product.map(roomOf).filter((room) => !rooms.includes(room))).toEqual([]);
});

it("a folder holds at most twenty source files", () => {
  const folders = Map.groupBy(
    product.filter((file) => file.endsWith(".ts")),
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
