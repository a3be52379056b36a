import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Every file of the project, by its path from the root. */
export const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" })
  .split("\n")
  .filter(Boolean);
export const sources = files.filter((file) => /^(src|test|bench|scripts)\/.*\.ts$/.test(file));

/** Makes what a file leads to once, however many rules look at it. */
export function once<T>(make: (file: string) => T): (file: string) => T {
  const made = new Map<string, T>();
  return (file) => {
    if (!made.has(file)) made.set(file, make(file));
    return made.get(file)!;
  };
}

export const text = once((file) => readFileSync(file, "utf8"));
/** Files that are shipped: no tests, and no helpers or generators of tests. */
export const product = sources.filter(
  (file) =>
    file.startsWith("src/") &&
    !file.endsWith(".test.ts") &&
    !/ from "(vitest|fast-check|@playwright\/test)"/.test(text(file)),
);

/** The imports of a file: paths from the root of the project, or names of packages. */
export const imports = (file: string): string[] =>
  [...text(file).matchAll(/^(?:import|export)\b[^;"']*?\bfrom "([^"]+)"|\bimport\("([^"]+)"\)/gm)].map(
    ([, fixed, lazy]) => {
      const specifier = (fixed ?? lazy)!;
      return specifier.startsWith(".") ? normalize(join(dirname(file), specifier)) : specifier;
    },
  );
