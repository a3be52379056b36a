import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Capability } from "../../src/capability.ts";

/** An exported capability. */
interface Found {
  name: string;
  /** Below src/. */
  path: string;
}

/**
 * The text of src/edge-capabilities.ts: the capabilities in src/capabilities.ts that edge processes load, in their
 * order. A capability of main contributes its `atEdges`. If that must load without the rest of the capability, it is in
 * a module of its own, `at-edges.ts`.
 */
export async function edgeCapabilitiesModule(): Promise<string> {
  const { capabilities } = await import("../../src/capabilities.ts");
  const found = await exportedCapabilities();
  const imports = new Map<string, Set<string>>();
  const list: string[] = [];
  const add = ({ name, path }: Found, text = name): void => {
    imports.set(path, (imports.get(path) ?? new Set()).add(name));
    list.push(text);
  };
  for (const each of capabilities as readonly Capability[]) {
    const own = found.get(each)!;
    if (each.processes !== "main" || each.takesAll) add(own);
    else if (each.atEdges !== undefined) {
      const apart = found.get(each.atEdges);
      if (apart === undefined) add(own, `${own.name}.atEdges!`);
      else add(apart);
    }
  }
  const lines = [...imports].map(([path, names]) => `import { ${[...names].join(", ")} } from "./${path}";`);
  return `// \`npm run generate\` makes this file from the list in capabilities.ts.
${lines.join("\n")}

/** The capabilities of edge processes, which load no others. */
export const edgeCapabilities = [
${list.map((text) => `  ${text},`).join("\n")}
] as const;
`;
}

async function exportedCapabilities(): Promise<Map<unknown, Found>> {
  const text = readFileSync("src/capabilities.ts", "utf8");
  const paths = [...text.matchAll(/^import \{[^}]+\} from "\.\/(.+)"/gm)].map(([, path]) => path!);
  const apart = paths
    .map((path) => `${dirname(path)}/at-edges.ts`)
    .filter((path) => existsSync(`src/${path}`));
  const found = new Map<unknown, Found>();
  for (const path of new Set([...paths, ...apart])) {
    const module = (await import(`../../src/${path}`)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(module)) found.set(value, { name, path });
  }
  return found;
}
