import { posix } from "node:path";

/*
 * Links modules into one. Each becomes a function that returns its exports, so scripts cannot import any of
 * them. Supports only the import and export statements of this project's formatted code, and throws at
 * others.
 */
const importing = /^import (?:\{([^}]*)\} from )?"([^"]+)";$/gm;
const declaring = /^export\s+(?=(?:async\s+)?(?:const|class|function)\s+(\w+))/gm;
const listing = /^export \{([^}]*)\};$/gm;
const leftOver = /^(?:import|export)\b.*/m;

/** The identifier under which the exports of a module are available in the output of `link`. */
export const identifier = (module: string): string => module.replaceAll(/\W/g, "_");

/** Links modules and their imports, in the order of `names`. `sourceOf` returns the source of a path. */
export function link(names: readonly string[], sourceOf: (name: string) => string): string {
  const outside = new Set<string>();
  const done = new Set<string>();
  const parts: string[] = [];
  const add = (name: string): void => {
    if (done.has(name)) return;
    done.add(name);
    const exported: string[] = [];
    const text = sourceOf(name)
      .replace(importing, (_, members: string | undefined, from: string) => {
        const path = from.startsWith(".") ? posix.join(posix.dirname(name), from) : from;
        if (path === from) outside.add(from);
        else add(path);
        return members === undefined
          ? ""
          : `const {${members.replaceAll(" as ", ": ")}} = ${identifier(path)};`;
      })
      .replace(declaring, (_, each: string) => {
        exported.push(each);
        return "";
      })
      .replace(listing, (_, members: string) => {
        exported.push(members.replaceAll(/\b(\w+) as (\w+)/g, "$2: $1"));
        return "";
      });
    const [statement] = leftOver.exec(text) ?? [];
    if (statement !== undefined) throw new Error(`${name} cannot be linked: ${statement}`);
    parts.push(`const ${identifier(name)} = (() => {\n${text}\nreturn { ${exported.join(", ")} };\n})();\n`);
  };
  for (const name of names) add(name);
  const imports = [...outside].map((from) => `import * as ${identifier(from)} from "${from}";\n`);
  return [...imports, ...parts].join("");
}
