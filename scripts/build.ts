import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";
import { strip } from "../src/sandbox/process/worker-sources.ts";

/*
 * `node scripts/build.ts` makes dist/, the program as JavaScript, for the npm package. A clone runs the TypeScript itself.
 *
 * Our modules and their packages become one bundle, split where modules are loaded on demand. Starting it takes half
 * the CPU time of starting from single files. Packages with binaries stay outside. Modules that workerd loads stay
 * single files, because the platform links them for each script.
 */
const outdir = "dist";

/** Entry modules of the program, its threads and its child processes; see moduleUrl(). */
const entries = [
  "main",
  "dns/name-server/thread",
  "platform/log-shipping/thread",
  "platform/object-log/integrity/check-process",
  "platform/storage/checkpoint",
  "products/images/engine/process",
  "sandbox/limits/cpu-limiter-thread",
  "workers/objects/query/process",
  "workers/scripts/versions/inspect-thread",
  "workers/stack-traces/thread",
];
/** Modules of the test kit that are there for `require`, too: Jest knows ES modules only with an option of Node. */
export const requiredEntries = ["./src/testkit/start-selvedge.ts", "./src/testkit/jest.ts"];
/** Packages with binaries: dependencies of the npm package. */
export const externalPackages = ["sharp", "workerd"];

/**
 * Gives dynamically imported packages the named exports that they have under Node. esbuild gives a CommonJS package only
 * a default export there.
 */
const namedExports: Plugin = {
  name: "named exports of dynamically imported packages",
  setup(builder) {
    builder.onResolve({ filter: /^[@a-z]/ }, ({ path, kind }) =>
      kind === "dynamic-import" && !path.startsWith("node:") && !externalPackages.includes(path)
        ? { path, namespace: "on-demand" }
        : undefined,
    );
    builder.onLoad({ filter: /^/, namespace: "on-demand" }, async ({ path }) => {
      const exported = (await import(path)) as object;
      const names = Object.keys(exported).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name));
      return {
        contents: `export { ${names.join(", ")} } from ${JSON.stringify(path)};`,
        resolveDir: process.cwd(),
      };
    });
  },
};

/** Leaves out the messages of zod in all languages but English. */
const oneLanguage: Plugin = {
  name: "one language",
  setup(builder) {
    builder.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: `export { default as en } from "./en.js";`,
    }));
  },
};

/** Rebuilds dist/. Throws if a bundle would not find its modules. */
export async function buildProgram(): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    entryPoints: entries.map((entry) => ({ in: `src/${entry}.ts`, out: entry })),
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node26",
    // One comment with a character beyond Latin-1 makes V8 keep a whole file with two bytes for each character.
    minifyWhitespace: true,
    lineLimit: 200,
    legalComments: "none",
    metafile: true,
    // Optional packages, which others try to load and can do without. The second is installed for development only.
    external: [...externalPackages, "pg-native", "supports-color"],
    // CommonJS packages call require() for modules of Node.
    banner: {
      js: 'import { createRequire as createBundleRequire } from "node:module"; const require = createBundleRequire(import.meta.url);',
    },
    plugins: [namedExports, oneLanguage],
    logLevel: "warning",
  });
  // moduleUrl() finds all other modules relative to its own URL.
  const homes = Object.entries(metafile.outputs)
    .filter(([, { inputs }]) => "src/platform/util/module-url.ts" in inputs)
    .map(([output]) => dirname(output));
  if (homes.some((home) => home !== outdir))
    throw new Error(
      `Expected module-url.ts to be bundled into ${outdir}/ but found it in ${homes.join(", ")}`,
    );
  writeFileSync(`${outdir}/THIRD-PARTY-LICENSES.txt`, licencesOf(Object.keys(metafile.inputs)));
  buildWorkerModules();
  await buildTestkit();
}

/** The modules that other programs import, with their types. Unlike the program, they run on the Node of the importer. */
async function buildTestkit(): Promise<void> {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as { exports: Record<string, string> };
  const entries = Object.values(exports);
  const options = {
    external: ["vitest", "@playwright/test"],
    outdir: `${outdir}/testkit`,
    bundle: true,
    platform: "node" as const,
    target: "node20",
  } satisfies BuildOptions;
  await build({ ...options, entryPoints: entries, splitting: true, format: "esm" });
  await build({
    ...options,
    entryPoints: requiredEntries,
    format: "cjs",
    outExtension: { ".js": ".cjs" },
    banner: { js: 'const moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
    define: { "import.meta.url": "moduleUrl" },
  });
  emitTypes(entries);
}

function emitTypes(entries: readonly string[]): void {
  const options = [
    "--declaration",
    "--emitDeclarationOnly",
    "--noEmit",
    "false",
    "--outDir",
    `${outdir}/testkit`,
  ];
  const fixed = [
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--lib",
    "es2024,esnext.disposable",
    "--types",
    "node",
    "--allowImportingTsExtensions",
    "--skipLibCheck",
  ];
  execFileSync("tsc", ["--ignoreConfig", ...options, ...fixed, ...entries], { stdio: "inherit" });
  rmSync(`${outdir}/testkit/edge-fetch.d.ts`);
  for (const entry of requiredEntries) emitRequiredTypes(entry.replace(/^\.\/src\/testkit\/(.*)\.ts$/, "$1"));
}

/**
 * Types for `require`, of a module by its path below the test kit: TypeScript takes the others for those of ES modules,
 * which CommonJS cannot require.
 */
function emitRequiredTypes(path: string): void {
  const output = `${outdir}/testkit/${path}.d.cts`;
  if (existsSync(output)) return;
  const relative = /(from |import\()"(\.[\w./-]+)\.ts"/g;
  const types = readFileSync(`${outdir}/testkit/${path}.d.ts`, "utf8");
  writeFileSync(output, types.replace(relative, '$1"$2.cts"'));
  for (const [, , imported] of types.matchAll(relative)) emitRequiredTypes(join(dirname(path), imported!));
}

/** Writes the modules of worker/ folders, and those that they import, without their types. */
function buildWorkerModules(): void {
  const files = new Set(globSync("src/**/worker/*.ts", { exclude: ["**/*.test.ts", "**/*.d.ts"] }));
  for (const file of files) {
    const source = strip(readFileSync(file, "utf8"));
    const output = file.replace(/^src\//, `${outdir}/`).replace(/ts$/, "js");
    mkdirSync(dirname(output), { recursive: true });
    writeFileSync(output, source);
    for (const [, imported] of source.matchAll(/(?:from|import) "(\.[\w./-]+)\.js"/g))
      files.add(join(dirname(file), `${imported}.ts`));
  }
}

/** The licences of the packages inside the bundle, each with its name and version. */
function licencesOf(inputs: readonly string[]): string {
  const folders = new Set(
    inputs.flatMap((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []),
  );
  const texts = [...folders].toSorted().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as Record<
      string,
      string
    >;
    const [file] = globSync(`${folder}/{LICENSE,LICENCE,license}*`);
    return `${name} ${version} (${license})\n\n${file === undefined ? "" : readFileSync(file, "utf8").trim()}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

if (import.meta.main) await buildProgram();
