import { createHash } from "node:crypto";
import { posix } from "node:path";
import { build, type Metafile, type OutputFile } from "esbuild";

/** Chunks that so many screens share belong to the first file: a request costs more than their bytes. */
const screensMin = 10;
const fileName = /"\.\/([\w.-]+\.js)"/g;
const importStatement = /import(?:\{([^}]*)\}from)?"\.\/([\w.-]+)";/y;

/** The files of a build by name, and the name of the first one. */
export interface Joined {
  files: Map<string, Uint8Array>;
  main: string;
  /** The name of a file by that which esbuild gave it. */
  named: (name: string) => string;
}

export const nameOf = (output: string): string => output.replace(/^.*[/\\]/, "");

/** The output and everything that it imports when it is loaded. */
export function importsOf({ outputs }: Metafile, output: string, seen = new Set<string>()): Set<string> {
  if (seen.has(output)) return seen;
  seen.add(output);
  for (const { path, kind } of outputs[output]!.imports)
    if (kind === "import-statement") importsOf({ outputs } as Metafile, path, seen);
  return seen;
}

/**
 * Joins the chunks that the first screen needs to one file. esbuild makes a chunk for each set of screens that shares
 * something, so the page would load a dozen small files.
 */
export async function joinChunks(
  metafile: Metafile,
  outputFiles: OutputFile[],
  entry: string,
): Promise<Joined> {
  const joined = new Set([...importsOf(metafile, entry), ...sharedByMany(metafile)].map(nameOf));
  const files = new Map(outputFiles.map(({ path, contents }) => [nameOf(path), contents]));
  const order = [nameOf(entry), ...[...joined].filter((name) => name !== nameOf(entry))];
  const exported = new Map(order.map((name) => [name, new Set<string>()]));
  const others = [...files].filter(([name]) => name.endsWith(".js") && !joined.has(name));
  for (const [, contents] of others)
    for (const { names, from } of headOf(textOf(contents)).imports)
      for (const name of names) exported.get(from)?.add(name.split(" as ")[0]!);
  const prefixOf = (name: string): string => `m${order.indexOf(name)}_`;
  const code = await joinedCode(
    order.map((name) => {
      const list = [...exported.get(name)!].map((each) => `${each} as ${prefixOf(name)}${each}`);
      return `export{${list.join()}}from"./${name}";`;
    }),
    new Map(order.map((name) => [name, textOf(files.get(name)!)])),
  );
  const main = "main.js";
  const scripts = new Map([[main, code]]);
  for (const [name, contents] of others) scripts.set(name, redirected(textOf(contents)));
  // Browsers keep a file under its name for good, and esbuild's names do not say what is changed here. The files name
  // each other in circles, so all of them get the hash of the build.
  const hash = createHash("sha256");
  for (const [name, text] of scripts) hash.update(`${name}\n${text}\n`);
  const version = hash.digest("hex").slice(0, 8).toUpperCase();
  const named = (name: string): string =>
    scripts.has(name) ? name.replace(/\.js$/, `-${version}.js`) : name;
  const result = new Map([...files].filter(([name]) => !name.endsWith(".js")));
  for (const [name, text] of scripts)
    result.set(named(name), Buffer.from(text.replace(fileName, (_, each: string) => `"./${named(each)}"`)));
  return { files: result, main: named(main), named };

  /** The code of another file, which imports from the joined one. */
  function redirected(text: string): string {
    const { imports, end } = headOf(text);
    const statements = imports.map(({ names, from }) => {
      if (!joined.has(from)) return `import${names.length === 0 ? "" : `{${names.join()}}from`}"./${from}";`;
      const renamed = names.map((name) => {
        const [theirs, own = theirs] = name.split(" as ");
        return `${prefixOf(from)}${theirs} as ${own}`;
      });
      return renamed.length === 0 ? "" : `import{${renamed.join()}}from"./${main}";`;
    });
    return statements.join("") + text.slice(end);
  }
}

const textOf = (contents: Uint8Array): string => Buffer.from(contents).toString();

/** The import statements at the head of a file that esbuild has written, and where they end. */
function headOf(text: string): { imports: { names: string[]; from: string }[]; end: number } {
  const imports: { names: string[]; from: string }[] = [];
  let end = 0;
  for (;;) {
    importStatement.lastIndex = end;
    const found = importStatement.exec(text);
    if (found === null) return { imports, end };
    end = importStatement.lastIndex;
    imports.push({ names: (found[1] ?? "").split(",").filter(Boolean), from: found[2]! });
  }
}

function sharedByMany(metafile: Metafile): string[] {
  const users = new Map<string, number>();
  for (const [output, { entryPoint }] of Object.entries(metafile.outputs)) {
    if (entryPoint?.startsWith("dashboard/screens/") !== true) continue;
    for (const each of importsOf(metafile, output)) users.set(each, (users.get(each) ?? 0) + 1);
  }
  return [...users].filter(([, count]) => count >= screensMin).map(([output]) => output);
}

async function joinedCode(statements: string[], sources: Map<string, string>): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: statements.join("\n"), sourcefile: "main.js", resolveDir: "/" },
    bundle: true,
    format: "esm",
    minify: true,
    write: false,
    legalComments: "none",
    logLevel: "silent",
    plugins: [
      {
        name: "chunks",
        setup(builder) {
          builder.onResolve({ filter: /^\.\// }, ({ path }) =>
            sources.has(posix.basename(path))
              ? { path: posix.basename(path), namespace: "chunks" }
              : { path, external: true },
          );
          builder.onLoad({ filter: /^/, namespace: "chunks" }, ({ path }) => ({
            contents: sources.get(path)!,
            loader: "js",
          }));
        },
      },
    ],
  });
  return outputFiles[0]!.text;
}
