import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, normalize } from "node:path";
import { parse } from "acorn";
import { describe, expect, it } from "vitest";

/** House rules that a machine can check. */
const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" })
  .split("\n")
  .filter(Boolean);
const sources = files.filter((file) => /^(src|test|bench|scripts)\/.*\.ts$/.test(file));
const text = (file: string): string => readFileSync(file, "utf8");
/** What is shipped: not tests, nor the helpers and generators that only they use. */
const product = sources.filter(
  (file) =>
    file.startsWith("src/") && !file.endsWith(".test.ts") && !/ from "(vitest|fast-check)"/.test(text(file)),
);

/** What a file imports: paths from the root of the project, or names of packages. */
const imports = (file: string): string[] =>
  [...text(file).matchAll(/^(?:import|export)\b[^;"']*?\bfrom "([^"]+)"|\bimport\("([^"]+)"\)/gm)].map(
    ([, fixed, lazy]) => {
      const specifier = (fixed ?? lazy)!;
      return specifier.startsWith(".") ? normalize(join(dirname(file), specifier)) : specifier;
    },
  );
/** The packages that a file begins with. Unlike a search, it does not see the code of scripts that tests hold in texts. */
function packagesOf(file: string): string[] {
  const code = stripTypeScriptTypes(text(file));
  const { body } = parse(code, { ecmaVersion: "latest", sourceType: "module", allowHashBang: true });
  return body.flatMap((node) => {
    const specifier = "source" in node ? String(node.source?.value ?? ".") : ".";
    return specifier.startsWith(".") ? [] : [specifier];
  });
}
const offenders = (
  where: (file: string) => boolean,
  bad: (imported: string, file: string) => boolean,
): string[] =>
  product.filter(where).flatMap((file) =>
    imports(file)
      .filter((each) => bad(each, file))
      .map((each) => `${file} imports ${each}`),
  );

describe("imports point one way: api → domain → store → storage", () => {
  it("SQL is built in stores and storage only", () => {
    const builds = product.filter((file) =>
      /\.(selectFrom|insertInto|updateTable|deleteFrom)\(/.test(text(file)),
    );
    const allowed = (file: string): boolean => /(^|\/)(\w+-)?store(-\w+)?\.ts$|^src\/storage\//.test(file);
    // The first start makes the installation's secret, and readiness asks the database for a row.
    expect(builds.filter((file) => !allowed(file))).toEqual(["src/accounts/owner.ts", "src/server.ts"]);
  });

  it("storage knows nothing of what is stored in it", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/storage/"),
        (each) => /^src\/(?!storage\/|util\/)/.test(each),
      ),
    ).toEqual([]);
  });

  it("stores know no operations and no HTTP", () => {
    expect(
      offenders(
        (file) => /\bstore\.ts$/.test(file),
        (each) => /\/api(-\w+)?\.ts$|^node:http$|^hono/.test(each),
      ),
    ).toEqual([]);
  });

  it("the rules language stands alone", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/rules/"),
        (each) => each.startsWith("src/") && !each.startsWith("src/rules/"),
      ),
    ).toEqual([]);
  });

  it("helpers import nothing of the product", () => {
    expect(
      offenders(
        (file) => file.startsWith("src/util/"),
        (each) => /^src\/(?!util\/)/.test(each),
      ),
    ).toEqual([]);
  });
});

it("packages that are imported are declared, and those that are declared are imported", () => {
  const { dependencies, devDependencies } = JSON.parse(text("package.json")) as Record<
    string,
    Record<string, string>
  >;
  const packageOf = (specifier: string): string =>
    specifier
      .split("/")
      .slice(0, specifier.startsWith("@") ? 2 : 1)
      .join("/");
  const used = (where: readonly string[], of: (file: string) => string[]): string[] => [
    ...new Set(
      where
        .flatMap(of)
        .filter((each) => !/^(src|test|bench|scripts)\/|^node:|^cloudflare:/.test(each))
        .map(packageOf),
    ),
  ];
  // The last two are programs that are run, not modules.
  expect([...used(product, imports), "node", "workerd"].toSorted()).toEqual(
    Object.keys(dependencies!).toSorted(),
  );
  const known = new Set([...Object.keys(dependencies!), ...Object.keys(devDependencies!)]);
  expect(used(sources, packagesOf).filter((each) => !known.has(each))).toEqual([]);
  expect(
    Object.values({ ...dependencies, ...devDependencies }).filter(
      (version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
    ),
  ).toEqual([]);
});

it("nothing in the project names a registry's host, a person's machine or unfinished work", () => {
  // The brackets keep this file from finding itself.
  const words = [/[T]ODO/, /[F]IXME/, /registry\.npmj[s]/, /"resolved": "[h]ttp/, /\/roo[t]\//, /\/hom[e]\//];
  const found = files
    .filter((file) => !/\.(png|jpg|mmdb)$/.test(file) && file !== "LICENSE")
    .flatMap((file) =>
      words.filter((word) => word.test(text(file))).map((word) => `${file}: ${word.source}`),
    );
  expect(found).toEqual([]);
});

it("files stay small enough to be read at once", () => {
  const linesMax = 420;
  expect(product.filter((file) => text(file).split("\n").length > linesMax)).toEqual([]);
});
