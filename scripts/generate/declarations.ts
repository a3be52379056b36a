import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/**
 * The text of src/declarations.ts: the static parts of the capabilities in src/capabilities.ts, in their order.
 * Reads the list as text, because the modules of capabilities use the file that this one makes.
 */
export function declarationsModule(): string {
  const text = readFileSync("src/capabilities.ts", "utf8");
  const folders = new Map(
    [...text.matchAll(/^import \{([^}]+)\} from "\.\/(.+)"/gm)].flatMap(([, names, path]) =>
      names!.split(",").map((name) => [name.trim(), dirname(path!)] as const),
    ),
  );
  const [, list] = /export const capabilities = \[([^\]]+)\]/.exec(text)!;
  const declared = new Set(
    list!
      .split(",")
      .flatMap((name) => folders.get(name.trim()) ?? [])
      .filter((folder) => existsSync(`src/${folder}/declaration.ts`)),
  );
  const imports = [...declared].map(
    (folder) => `import { declaration as ${nameOf(folder)} } from "./${folder}/declaration.ts";`,
  );
  return `// \`npm run generate\` makes this file from the list in capabilities.ts.
${imports.join("\n")}

/** The static parts of all capabilities. This module loads no capability, so every room and command can read it. */
export const declarations = [
${[...declared].map((folder) => `  ${nameOf(folder)},`).join("\n")}
] as const;
`;
}

/** controlZoneSettings for control/zone-settings. */
const nameOf = (folder: string): string =>
  folder.replace(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase());
