import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { joinChunks, type Joined } from "./join-chunks.ts";

/** Builds a page with two screens, each with a part that the page uses too; that of the second screen has `text`. */
async function built(folder: string, text: string): Promise<Joined> {
  const files = {
    "main.js":
      'import { one } from "./one.js"; import { two } from "./two.js"; one(); two(); import("./first.js"); import("./second.js");',
    "first.js": 'import { one } from "./one.js"; one("first");',
    "second.js": 'import { two } from "./two.js"; two("second");',
    "one.js": 'export const one = (name) => console.log("one", name);',
    "two.js": `export const two = (name) => console.log(${JSON.stringify(text)}, name);`,
  };
  for (const [name, code] of Object.entries(files)) await writeFile(join(folder, name), code);
  const { metafile, outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: ["main.js"],
    outdir: "out",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    splitting: true,
    bundle: true,
    minify: true,
    format: "esm",
    metafile: true,
    write: false,
  });
  const entry = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === "main.js")![0];
  return joinChunks(metafile, outputFiles, entry);
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

it("gives no file the name of another build's file with other contents, and names only files that are there", async () => {
  const folder = join(await mkdtemp(join(tmpdir(), "chunks-")), "page");
  await mkdir(folder);
  const first = await built(folder, "first");
  const second = await built(folder, "second");
  await rm(folder, { recursive: true });
  for (const { files, main } of [first, second]) {
    expect([...files.keys()]).toContain(main);
    const imported = [...files.values()].flatMap((bytes) => [
      ...textOf(bytes).matchAll(/"\.\/([\w.-]+\.js)"/g),
    ]);
    expect(imported.length).toBeGreaterThan(1);
    for (const [, name] of imported) expect([...files.keys()]).toContain(name);
  }
  for (const [name, bytes] of second.files) {
    const before = first.files.get(name);
    if (before !== undefined) expect(textOf(before)).toBe(textOf(bytes));
  }
  expect(second.main).not.toBe(first.main);
});
