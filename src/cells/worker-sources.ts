import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { posix } from "node:path";
import type { CellScript } from "./script.ts";

const sources = new Map<string, string>();

/** A module of ours that runs inside workerd: the TypeScript file of that name under src/, without its types. */
export function workerSource(name: string): string {
  let source = sources.get(name);
  if (source === undefined) {
    const file = new URL(`../${name.replace(/js$/, "ts")}`, import.meta.url);
    source = strip(readFileSync(file, "utf8"));
    sources.set(name, source);
  }
  return source;
}

/** Types become blanks, so that lines and columns stay; imports then name the stripped files. */
function strip(source: string): string {
  // It is what Node does to this program's own files; as a function it still warns that it may change.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source).replace(/(from|import) "(\.[\w./-]+)\.ts"/g, '$1 "$2.js"');
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
  for (const name of parts(script)) modules[`${home}/${name}`] = { js: workerSource(name) };
  if (script.profile === "script") modules[`${home}/env.js`] = { js: envModule(script) };
  modules[`${home}/entry.js`] = { js: entry(script) };
  return {
    mainModule: `${home}/entry.js`,
    modules,
    compatibilityDate: script.compatibilityDate,
    compatibilityFlags: flagsOf(script),
    env: script.env,
    ways: (script.bindings ?? []).flatMap(({ name, way }) => (way === undefined ? [] : [[name, way]])),
    isDispatched: script.isDispatched ?? false,
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
  const named = own.filter((flag) => !(hasNode && flag === "nodejs_als"));
  return [...asked, ...named, ...(isBeforeGetters(script, asked) ? [getters] : [])];
}

const getters = "workers_api_getters_setters_on_prototype";
/** The wrappers take getters from prototypes, where scripts of before this date do not have them. */
const isBeforeGetters = ({ compatibilityDate }: CellScript, asked: readonly string[]): boolean =>
  compatibilityDate < "2022-01-31" && !asked.includes(getters);

const scriptParts = ["cells/worker/run.js", "runtime/worker/env.js", "runtime/worker/script.js"];
const snippetParts = ["channel", "lockdown-snippet", "snippet", "web-socket-pair"].map(
  (name) => `cells/worker/${name}.js`,
);

/** The modules of ours that a script has beside its own. */
const parts = ({ profile, bindings = [], hasWorkflows }: CellScript): Iterable<string> =>
  withImports(
    profile === "snippet"
      ? snippetParts
      : [
          ...scriptParts,
          ...bindings.map(({ module }) => module),
          ...(hasWorkflows === true ? ["workflows/worker/entry.js"] : []),
        ],
  );

const importsKnown = new Map<string, string[]>();

function importsOf(name: string): string[] {
  let imports = importsKnown.get(name);
  if (imports === undefined) {
    const paths = workerSource(name).matchAll(/(?:from|import) "(\.[\w./-]+\.js)"/g);
    imports = Array.from(paths, ([, path]) => posix.join(posix.dirname(name), path!));
    importsKnown.set(name, imports);
  }
  return imports;
}

/** Modules with those that they import. */
function withImports(names: readonly string[]): Set<string> {
  const all = new Set(names);
  // What is added to a set while it is walked is walked too.
  for (const name of all) for (const imported of importsOf(name)) all.add(imported);
  return all;
}

const entry = ({ profile, mainModule, classNames = [], hasWorkflows }: CellScript): string =>
  profile === "snippet"
    ? `import "./cells/worker/web-socket-pair.js";
import "./cells/worker/lockdown-snippet.js";
import { SnippetEntry } from "./cells/worker/snippet.js";
import handler from ${JSON.stringify(`../${mainModule}`)};
export class Entry extends SnippetEntry { get handler() { return handler; } }
export { Control } from "./cells/worker/run.js";
`
    : `import "./env.js";
import { entryOf } from "./runtime/worker/script.js";
import * as user from ${JSON.stringify(`../${mainModule}`)};
export const Entry = entryOf(user.default);
${hasWorkflows === true ? 'import { segmentsOf } from "./workflows/worker/entry.js";\nexport const Segments = segmentsOf(user);\n' : ""}${classNames.map((name, i) => `const class${i} = entryOf(user[${JSON.stringify(name)}]);\nexport { class${i} as ${JSON.stringify(`Entry:${name}`)} };\n`).join("")}export { Control } from "./cells/worker/run.js";
`;

/** Puts bindings into `env` before the script's own modules are evaluated: they may look at it. */
function envModule({ bindings = [] }: CellScript): string {
  const imports = bindings.map(
    ({ module, factory }, i) => `import { ${factory} as make${i} } from ${JSON.stringify(`./${module}`)};\n`,
  );
  const calls = bindings.map(
    ({ name, description }, i) =>
      `bind(${JSON.stringify(name)}, make${i}, ${JSON.stringify(description)});\n`,
  );
  return `import { bind } from "./runtime/worker/env.js";\n${imports.join("")}${calls.join("")}`;
}
