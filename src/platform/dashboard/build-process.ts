import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type BuildOptions, type Metafile, type Plugin } from "esbuild";
import { sampleOf, type Schema } from "./body-sample.ts";
import { assetsPath, type Bundle, type BundledFile } from "./bundle.ts";
import { importsOf, joinChunks, nameOf, type Joined } from "./join-chunks.ts";

/* A process that builds the console from `dashboard/`, and writes it to its output as JSON. */
const root = fileURLToPath(new URL("../../../", import.meta.url));

interface Documented {
  operationId: string;
  summary: string;
  "x-permission": string | null;
  parameters?: { name: string; in: string; schema?: { enum?: unknown[] } }[];
  requestBody?: { content: Record<string, { schema?: Schema }> };
}
interface OpenApi {
  paths: Record<string, Record<string, Documented>>;
  components: { schemas: Record<string, Schema> };
}

/** Tables that the console takes from openapi.json and package.json. */
const tables: Record<string, (api: OpenApi) => unknown> = {
  /** The permission of each operation that needs one, by method and path. */
  "virtual:permissions": (api) =>
    Object.fromEntries(
      operationsOf(api).flatMap(([key, { "x-permission": permission }]) =>
        permission === null ? [] : [[key, permission]],
      ),
    ),
  "virtual:runtime": () => ({ date: runtimeDate() }),
  /** Every operation: its name, its parameters, and a sample of its body, which is far shorter than the schema. */
  "virtual:operations": (api) =>
    operationsOf(api).map(([key, operation]) => ({
      key,
      id: operation.operationId,
      summary: operation.summary,
      query: (operation.parameters ?? [])
        .filter((parameter) => parameter.in === "query")
        .map(({ name, schema }) => ({ name, choices: schema?.enum })),
      content: Object.keys(operation.requestBody?.content ?? {})[0],
      sample: sampleOfBody(operation, api.components.schemas),
    })),
};

function sampleOfBody({ requestBody }: Documented, schemas: Readonly<Record<string, Schema>>): unknown {
  const schema = requestBody?.content["application/json"]?.schema;
  return schema && sampleOf(schema, schemas);
}

/** The day of the runtime, which refuses a compatibility date that is later by more than a week. */
const runtimeDate = (): string => {
  const { dependencies } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
    dependencies: { workerd: string };
  };
  return dependencies.workerd.replace(/^\d+\.(\d{4})(\d{2})(\d{2})\..*$/, "$1-$2-$3");
};

const operationsOf = (api: OpenApi): [string, Documented][] =>
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Documented] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );

const virtualTables: Plugin = {
  name: "tables of operations",
  setup(builder) {
    builder.onResolve({ filter: /^virtual:/ }, ({ path }) => ({ path, namespace: "tables" }));
    builder.onLoad({ filter: /^/, namespace: "tables" }, ({ path }) => ({
      contents: JSON.stringify(
        tables[path]!(JSON.parse(readFileSync(`${root}openapi.json`, "utf8")) as OpenApi),
      ),
      loader: "json",
    }));
  },
};

const types: Record<string, string> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

function bundled(type: string, contents: Uint8Array): BundledFile {
  const gzip = gzipSync(contents, { level: 9 });
  const br = brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } });
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
  return {
    type,
    body: text(contents),
    ...(gzip.length < contents.length && { gzip: text(gzip), br: text(br) }),
  };
}

/** The page without the links to the code of its screen, and the hash of the script in it. */
function pageOf(metafile: Metafile, main: string, first: string): Pick<Bundle, "page" | "scriptHash"> {
  const fileOf = (source: string): string => assetsPath + nameOf(outputOf(metafile, `dashboard/${source}`));
  const parts: Record<string, string> = {
    first: `<script>${first}</script>`,
    style: fileOf("style.css"),
    icon: fileOf("icon.svg"),
    main: assetsPath + main,
  };
  const page = readFileSync(`${root}dashboard/index.html`, "utf8").replace(
    /\{(\w+)\}/g,
    (all, name: string) => parts[name] ?? all,
  );
  return { page, scriptHash: `sha256-${createHash("sha256").update(first).digest("base64")}` };
}

const outputOf = ({ outputs }: Metafile, source: string): string =>
  Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === source)![0];

/** The files of each screen beside the first one, by the pattern of its route. */
function screensOf(metafile: Metafile, { files, named }: Joined): Bundle["screens"] {
  const sources = Object.keys(metafile.inputs).filter((path) => path.endsWith("/routes.ts"));
  return sources.flatMap((source) => {
    const [, ...routes] = readFileSync(root + source, "utf8").split('pattern: "');
    return routes.map((route) => {
      const pattern = route.slice(0, route.indexOf('"'));
      const path = /import\("([^"]+)"\)/.exec(route)![1]!;
      const output = outputOf(metafile, posix.join(posix.dirname(source), path));
      const names = [...importsOf(metafile, output)].map((each) => named(nameOf(each)));
      return { pattern, names: names.filter((name) => files.has(name)) };
    });
  });
}

const options = {
  absWorkingDir: root,
  bundle: true,
  minify: true,
  target: ["chrome120", "firefox121", "safari17.4"],
  tsconfigRaw: {},
  legalComments: "none",
  write: false,
  logLevel: "silent",
} satisfies BuildOptions;

/** Builds the console. Rejects with esbuild's messages if the sources have an error. */
async function buildBundle(): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    ...options,
    entryPoints: ["dashboard/main.tsx", "dashboard/style.css", "dashboard/icon.svg"],
    outdir: "out",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    splitting: true,
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy" },
    metafile: true,
    plugins: [virtualTables],
  });
  const joined = await joinChunks(metafile, outputFiles, outputOf(metafile, "dashboard/main.tsx"));
  const first = await build({ ...options, entryPoints: ["dashboard/first.ts"], format: "iife" });
  const assets = [...joined.files].map(
    ([name, contents]) => [name, bundled(types[name.slice(name.lastIndexOf(".") + 1)]!, contents)] as const,
  );
  return {
    ...pageOf(metafile, joined.main, first.outputFiles[0]!.text.trim()),
    screens: screensOf(metafile, joined),
    assets: Object.fromEntries(assets),
  };
}

process.stdout.write(JSON.stringify(await buildBundle()));
