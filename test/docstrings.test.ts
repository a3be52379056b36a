import { expect, it } from "vitest";
import { imports, product, text } from "./helpers/sources.ts";

/** Exported functions, classes and types that another room imports say what they are, above their declaration. */
const roomOf = (file: string): string => (file.split("/").length > 2 ? file.split("/")[1]! : "wiring");

/** The names that a file imports from another, by the other file. Names behind `as` are the other file's. */
function importedNames(file: string): { name: string; from: string }[] {
  const statements = text(file).matchAll(
    /^(?:import|export) (?:type )?[^;"']*?\{([^}]*)\} from "(\.[^"]+)"/gm,
  );
  const known = imports(file);
  return [...statements].flatMap(([statement, names]) => {
    const from = known.find((each) => statement.includes(`/${each.split("/").at(-1)}"`)) ?? "";
    return names!
      .split(",")
      .map((each) =>
        each
          .trim()
          .replace(/^type /, "")
          .replace(/ as .*$/, ""),
      )
      .filter(Boolean)
      .map((name) => ({ name, from }));
  });
}

/** The number of lines before a declaration that hold a comment's end. Zero if it has none. */
function isDocumented(source: string, name: string): boolean | undefined {
  const declaration = new RegExp(
    `^export (?:declare |abstract |async )*(?:function\\*?|class|interface|type|const|let) ${name.replace("$", "\\$")}\\b`,
    "m",
  );
  const found = declaration.exec(source);
  if (found === null) return undefined;
  return source.slice(0, found.index).trimEnd().endsWith("*/");
}

/** Each exported name that a file of another room imports, and whether it has a comment. */
function importedElsewhere(): { name: string; isDocumented: boolean }[] {
  const names = new Map<string, boolean>();
  for (const file of product)
    for (const { name, from } of importedNames(file)) {
      if (!from.startsWith("src/") || roomOf(from) === roomOf(file)) continue;
      const documented = isDocumented(text(from), name);
      if (documented !== undefined) names.set(`${from} ${name}`, documented);
    }
  return [...names].map(([name, documented]) => ({ name, isDocumented: documented }));
}

/** Those without a comment. The number only becomes smaller. */
const withoutCommentMax = 0;

it("exports that another room imports have a comment", () => {
  const all = importedElsewhere();
  expect(all.length).toBeGreaterThan(300);
  const without = all.filter((each) => !each.isDocumented).map(({ name }) => name);
  expect(without.toSorted().slice(withoutCommentMax), `${without.length} have none`).toEqual([]);
  expect(without.length).toBe(withoutCommentMax);
});
