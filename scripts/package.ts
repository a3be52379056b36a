import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { buildConsole, packagedBundle } from "../src/platform/dashboard/files.ts";
import { buildProgram, externalPackages, requiredEntries } from "./build.ts";

/*
 * `npm pack` and `npm publish` run it. `prepare` builds dist/ and the console, and installs the package's own package.json; `restore`
 * removes it again. The package bundles its dependencies, except those with binaries. It does not depend on `node`,
 * because npm would put that binary into the .bin folder of every project that installs the package.
 */
const kept = "package.json.clone";

/** A module that other programs import or require, with its types for each. */
function exported(source: string): Record<string, string | object> {
  const built = source.replace(/^\.\/src\/(.*)\.ts$/, "./dist/$1");
  const required = { types: `${built}.d.cts`, default: `${built}.cjs` };
  return {
    ...(requiredEntries.includes(source) ? { require: required } : {}),
    types: `${built}.d.ts`,
    default: `${built}.js`,
  };
}

/** Types for a TypeScript that does not read `exports`: version 5 does not with `module` commonjs. */
function typesWithoutExports(exports: Record<string, string>): object {
  const required = Object.entries(exports).filter(([, source]) => requiredEntries.includes(source));
  const typesOf = (source: string): string => source.replace(/^\.\/src\/(.*)\.ts$/, "./dist/$1.d.cts");
  const below = required.filter(([path]) => path !== ".");
  return {
    types: typesOf(exports["."]!),
    typesVersions: {
      "*": Object.fromEntries(below.map(([path, source]) => [path.slice(2), [typesOf(source)]])),
    },
  };
}

async function prepare(): Promise<void> {
  if (existsSync(kept)) restore();
  await buildProgram();
  mkdirSync(dirname(packagedBundle), { recursive: true });
  writeFileSync(packagedBundle, await buildConsole());
  const clone = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, unknown> & {
    dependencies: Record<string, string>;
    exports: Record<string, string>;
  };
  const { name, version, description, license, bin, type } = clone;
  const dependencies = Object.fromEntries(externalPackages.map((each) => [each, clone.dependencies[each]]));
  const files = [
    "bin",
    "dist",
    "dashboard-dist",
    "docs",
    "examples",
    "packaging",
    "openapi.json",
    "openapi-test.json",
    "bom.cdx.json",
    "CHANGELOG.md",
    "SECURITY.md",
  ];
  const published = {
    name,
    version,
    description,
    license,
    bin,
    type,
    exports: {
      ...Object.fromEntries(Object.entries(clone.exports).map(([path, source]) => [path, exported(source)])),
      "./package.json": "./package.json",
    },
    ...typesWithoutExports(clone.exports),
    files,
    engines: { node: ">=26.4" },
    dependencies,
  };
  renameSync("package.json", kept);
  writeFileSync("package.json", `${JSON.stringify(published, null, 2)}\n`);
}

function restore(): void {
  if (existsSync(kept)) renameSync(kept, "package.json");
}

if (process.argv[2] === "prepare") await prepare();
else if (process.argv[2] === "restore") restore();
else {
  process.stderr.write("Expected prepare or restore\n");
  process.exitCode = 2;
}
