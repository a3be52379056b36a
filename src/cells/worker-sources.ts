import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import type { CellScript } from "./script.ts";

/**
 * The code that runs inside workerd: written in TypeScript, its types taken away, one module for each file. The first
 * of each list is where workerd begins.
 */
const files = {
  system: ["system.ts"],
  snippet: ["lockdown-snippet.ts", "run.ts", "snippet.ts"],
  script: ["run.ts", "script.ts", "bindings.ts"],
} as const;
type Part = keyof typeof files;

const folder = new URL("./worker/", import.meta.url);
const sources = new Map<string, { name: string; source: string }[]>();

export function workerSources(part: Part): readonly { name: string; source: string }[] {
  let known = sources.get(part);
  if (known === undefined) {
    known = files[part].map((file) => ({
      name: file.replace(/ts$/, "js"),
      source: strip(readFileSync(new URL(file, folder), "utf8")),
    }));
    sources.set(part, known);
  }
  return known;
}

/** Types become blanks, so that lines and columns stay; imports then name the stripped files. */
function strip(source: string): string {
  // It is what Node does to this program's own files; as a function it still warns that it may change.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source).replace(/(from|import) "(\.\/[\w-]+)\.ts"/g, '$1 "$2.js"');
  } finally {
    process.emitWarning = emitWarning;
  }
}

const home = "__selvedge";

/** What a cell's system worker loads for a script: the wrapper of its profile around the script's own modules. */
export function loadable(script: CellScript): unknown {
  const modules: Record<string, unknown> = {};
  for (const { name, kind, content } of script.modules) {
    modules[name] =
      typeof content === "string"
        ? { [kind]: content }
        : { [kind]: null, base64: Buffer.from(content).toString("base64") };
  }
  for (const { name, source } of workerSources(script.profile)) modules[`${home}/${name}`] = { js: source };
  modules[`${home}/entry.js`] = { js: entry(script) };
  return {
    mainModule: `${home}/entry.js`,
    modules,
    compatibilityDate: script.compatibilityDate,
    compatibilityFlags: flagsOf(script),
    env: script.env,
  };
}

/** What a script may not switch on for itself: it is about workerd, not about the script. */
const ownFlags: Record<CellScript["profile"], readonly string[]> = {
  snippet: ["nodejs_als", "disallow_eval_during_startup"],
  script: ["nodejs_als"],
};

function flagsOf(script: CellScript): string[] {
  const own = ownFlags[script.profile];
  const asked = script.compatibilityFlags.filter((flag) => flag !== "experimental" && !own.includes(flag));
  const hasNode = asked.some((flag) => flag === "nodejs_compat" || flag === "nodejs_compat_v2");
  return [...asked, ...own.filter((flag) => !(hasNode && flag === "nodejs_als"))];
}

const entry = ({ profile, mainModule }: CellScript): string =>
  profile === "snippet"
    ? `import "./lockdown-snippet.js";
import { SnippetEntry } from "./snippet.js";
import handler from ${JSON.stringify(`../${mainModule}`)};
export class Entry extends SnippetEntry { get handler() { return handler; } }
export { Control } from "./run.js";
`
    : `import { entryOf } from "./script.js";
export * from ${JSON.stringify(`../${mainModule}`)};
import * as user from ${JSON.stringify(`../${mainModule}`)};
export const Entry = entryOf(user);
export { Control } from "./run.js";
`;
