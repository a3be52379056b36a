import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Metafile, type Plugin } from "esbuild";
import { assetsPath, type Bundle, type BundledFile } from "./bundle.ts";

/* A process that builds the console from `dashboard/`, and writes it to its output as JSON. */
const root = fileURLToPath(new URL("../../../", import.meta.url));

interface Documented {
  operationId: string;
  summary: string;
  "x-permission": string | null;
  parameters?: { name: string; in: string; schema?: object; required?: boolean }[];
  requestBody?: { content: Record<string, { schema?: object }> };
}
interface OpenApi {
  paths: Record<string, Record<string, Documented>>;
  components: { schemas: Record<string, object> };
}

/** Tables that the console takes from openapi.json. */
const tables: Record<string, (api: OpenApi) => unknown> = {
  /** The permission of each operation that needs one, by method and path. */
  "virtual:permissions": (api) =>
    Object.fromEntries(
      operationsOf(api).flatMap(([key, { "x-permission": permission }]) =>
        permission === null ? [] : [[key, permission]],
      ),
    ),
  /** Every operation: its name, its parameters, and the schema of its body. */
  "virtual:operations": (api) => ({
    schemas: api.components.schemas,
    operations: operationsOf(api).map(([key, operation]) => ({
      key,
      id: operation.operationId,
      summary: operation.summary,
      permission: operation["x-permission"],
      query: (operation.parameters ?? [])
        .filter((parameter) => parameter.in === "query")
        .map(({ name, schema, required }) => ({ name, schema, required })),
      content: Object.keys(operation.requestBody?.content ?? {})[0],
      body: operation.requestBody?.content["application/json"]?.schema,
    })),
  }),
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

/** The page, with the names of the files that it loads first. */
function pageOf({ outputs }: Metafile): string {
  const nameOf = (output: string): string => `${assetsPath}${output.replace(/^.*\//, "")}`;
  const entry = (source: string): [string, Metafile["outputs"][string]] =>
    Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === `dashboard/${source}`)!;
  const [main, { imports }] = entry("main.tsx");
  const preloads = imports
    .filter(({ kind }) => kind === "import-statement")
    .map(({ path }) => `<link rel="modulepreload" href="${nameOf(path)}">`);
  const parts: Record<string, string> = {
    theme: nameOf(entry("theme.ts")[0]),
    style: nameOf(entry("style.css")[0]),
    icon: nameOf(entry("icon.svg")[0]),
    main: nameOf(main),
    preloads: preloads.join(""),
  };
  return readFileSync(`${root}dashboard/index.html`, "utf8").replace(
    /\{(\w+)\}/g,
    (_, name: string) => parts[name]!,
  );
}

/** Builds the console. Rejects with esbuild's messages if the sources have an error. */
async function buildBundle(): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ["dashboard/main.tsx", "dashboard/theme.ts", "dashboard/style.css", "dashboard/icon.svg"],
    outdir: "out",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    target: ["chrome120", "firefox121", "safari17.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy" },
    tsconfigRaw: {},
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "silent",
    plugins: [virtualTables],
  });
  const assets = outputFiles.map(({ path, contents }) => {
    const name = path.replace(/^.*[/\\]/, "");
    return [name, bundled(types[name.slice(name.lastIndexOf(".") + 1)]!, contents)] as const;
  });
  return {
    page: bundled("text/html; charset=utf-8", Buffer.from(pageOf(metafile))),
    assets: Object.fromEntries(assets),
  };
}

process.stdout.write(JSON.stringify(await buildBundle()));
