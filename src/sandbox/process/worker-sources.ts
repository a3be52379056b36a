import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { runtimeDate } from "./runtime-date.ts";
import type { CellScript } from "./script.ts";
import { clockSuffix, hasScriptClock } from "./script-clock.ts";
import { identifier, link } from "./worker-linker.ts";
import { isBuilt, moduleUrl } from "../../platform/util/module-url.ts";

const sources = new Map<string, string>();

/** The JavaScript of one of this project's modules that runs inside workerd. `name` is its path below src/, ending in `.js`. */
export function workerSource(name: string): string {
  let source = sources.get(name);
  if (source === undefined) {
    const text = readFileSync(moduleUrl(name.replace(/\.js$/, "")), "utf8");
    source = isBuilt ? text : strip(text);
    sources.set(name, source);
  }
  return source;
}

/** Replaces types by blanks, which keeps lines and columns, and the extension in imports by `.js`. */
export function strip(source: string): string {
  // Node runs this program's own files in the same way, but warns that the function is experimental.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source).replace(/(from|import) "(\.[\w./-]+)\.ts"/g, '$1 "$2.js"');
  } finally {
    process.emitWarning = emitWarning;
  }
}

const known = new Map<string, string>();

/** The linked text of modules and their imports. */
function linked(names: readonly string[]): string {
  const key = names.join(" ");
  let text = known.get(key);
  if (text === undefined) known.set(key, (text = link(names, workerSource)));
  return text;
}

/**
 * The code that the system worker loads for a script: the script's modules and a main module with all of the
 * platform's code. The main module exports only what workerd needs, so no import of a script can reach the
 * platform's code.
 */
export function loadable(script: CellScript): unknown {
  const modules: Record<string, unknown> = {};
  let home = "__selvedge";
  while (script.modules.some(({ name }) => name.startsWith(home))) home += "_";
  for (const { name, kind, content } of script.modules) {
    if (isBuiltinName(name)) continue;
    modules[name] =
      typeof content === "string"
        ? { [kind]: content }
        : { [kind]: null, base64: Buffer.from(content).toString("base64") };
  }
  if (script.profile === "script") modules["cloudflare:sockets"] = { js: socketsModule };
  // Imported indirectly, because a namespace with a member "then" cannot be awaited.
  modules[`${home}/user.js`] = { js: `export * as user from ${JSON.stringify(`../${script.mainModule}`)};` };
  modules[`${home}/entry.js`] = { js: entry(script) };
  return {
    mainModule: `${home}/entry.js`,
    modules,
    compatibilityDate: runtimeDate(script.compatibilityDate),
    compatibilityFlags: flagsOf(script),
    env: script.env,
    systemEntrypoints: (script.bindings ?? []).flatMap(({ name, systemEntrypoint }) =>
      systemEntrypoint === undefined ? [] : [[name, systemEntrypoint]],
    ),
    isDispatched: script.isDispatched ?? false,
  };
}

/** Whether a name would replace one of workerd's built-in modules, also for the platform's code. */
export const isBuiltinName = (name: string): boolean =>
  /^[./]*(?:node|cloudflare|workerd)[\w-]*:/i.test(name);

/**
 * Replaces workerd's own module, which supports neither runs nor TLS here. `socketsOf` provides
 * `selvedgeConnect`.
 */
const socketsModule = `const refuse = (what) => { throw new Error(what); };
export const connect = globalThis.selvedgeConnect ?? (() => refuse('connect() is there where a module of the script says "cloudflare:sockets" in its code.'));
export const internalNewHttpClient = () => refuse("internalNewHttpClient() of cloudflare:sockets is not available here.");
export default { connect, internalNewHttpClient };
`;

/** Only scripts that name these modules load the code for sockets. */
const namesSockets = ({ profile, modules }: CellScript): boolean =>
  profile === "script" &&
  modules.some(
    ({ content }) =>
      typeof content === "string" && /["'`](?:cloudflare:sockets|(?:node:)?(?:net|tls))["'`]/.test(content),
  );

/** Compatibility flags that scripts cannot choose, because they concern workerd and not the script. */
const ownFlags: Record<CellScript["profile"], readonly string[]> = {
  snippet: [
    "nodejs_als",
    "no_nodejs_compat",
    "no_nodejs_compat_v2",
    "disallow_eval_during_startup",
    "legacy_module_registry",
  ],
  script: ["nodejs_als", "legacy_module_registry"],
};

/** The other registry is the default from 2026-11-17, and has no place for our own modules of workerd's names. */
const refusedFlags: ReadonlySet<string> = new Set(["experimental", "new_module_registry"]);

function flagsOf(script: CellScript): string[] {
  const own = ownFlags[script.profile];
  const asked = script.compatibilityFlags.filter((flag) => !refusedFlags.has(flag) && !own.includes(flag));
  const hasNode = asked.some((flag) => flag === "nodejs_compat" || flag === "nodejs_compat_v2");
  const named = own.filter((flag) => !(hasNode && flag === "nodejs_als"));
  return [...asked, ...named, ...(isBeforeGetters(script, asked) ? [getters] : [])];
}

const getters = "workers_api_getters_setters_on_prototype";
/** Whether a script is older than getters on prototypes, which the wrappers need. */
const isBeforeGetters = ({ compatibilityDate }: CellScript, asked: readonly string[]): boolean =>
  compatibilityDate < "2022-01-31" && !asked.includes(getters);

/** The platform's modules for a script, in the order in which they run. All of them run before the script's. */
function partsOf(script: CellScript): readonly string[] {
  const { profile, bindings = [], hasWorkflows, objectClasses = [] } = script;
  if (profile === "snippet")
    return ["web-socket-pair", "lockdown-snippet", "snippet"].map((name) => `sandbox/worker/${name}.js`);
  return [
    "sandbox/worker/run.js",
    ...(hasScriptClock() ? [dateModule] : []),
    "workers/runtime/worker/env.js",
    ...bindings.map(({ module }) => module),
    "workers/runtime/worker/caches.js",
    ...(namesSockets(script)
      ? ["workers/runtime/worker/sockets.js", "workers/runtime/worker/node-net.js"]
      : []),
    "workers/runtime/worker/script.js",
    "workers/runtime/worker/rpc.js",
    ...(isServiceWorker(script) ? [serviceWorker] : []),
    ...(hasWorkflows === true ? ["products/workflows/worker/entry.js"] : []),
    ...(objectClasses.length > 0 ? [objectModule] : []),
  ];
}

/** Runs the platform's modules first, so that they save native functions, and then the script's. */
const entry = (script: CellScript): string => `${linked(partsOf(script))}
${dateOf(script)}${bindingsOf(script)}${socketsOf(script)}${isServiceWorker(script) ? `const handlers = ${identifier(serviceWorker)}.listen();\n` : ""}const { user } = await import("./user.js");
${entrypointsOf(script)}export const Control = ${identifier("sandbox/worker/run.js")}.Control;
`;

const dateModule = "sandbox/worker/tested-date.js";
/** With the test kit: code of a module sees the time at which it was loaded. */
const dateOf = ({ profile }: CellScript): string =>
  profile === "script" && hasScriptClock()
    ? `${identifier(dateModule)}.setOffset(${clockSuffix().slice(1)});\n`
    : "";

const objectModule = "workers/objects/worker/object.js";
const serviceWorker = "workers/runtime/worker/service-worker.js";
/** Whether a script registers listeners instead of exporting handlers: its main module is not an ES module. */
const isServiceWorker = ({ profile, mainModule, modules }: CellScript): boolean =>
  profile === "script" && modules.some(({ name, kind }) => name === mainModule && kind === "cjs");

/** Evaluates the module before the script's own, so that scripts see only its exports. */
const socketsOf = (script: CellScript): string =>
  namesSockets(script)
    ? `${identifier("workers/runtime/worker/node-net.js")}.useSockets();
globalThis.selvedgeConnect = ${identifier("workers/runtime/worker/sockets.js")}.connect;
await import("cloudflare:sockets");
delete globalThis.selvedgeConnect;
`
    : "";

/** Adds bindings to `env` before the script's modules run, because they may read it. */
const bindingsOf = ({ bindings = [] }: CellScript): string =>
  bindings
    .map(
      ({ module, factory, className, description }) =>
        `${identifier("workers/runtime/worker/env.js")}.bind(${JSON.stringify(className)}, ${identifier(module)}.${factory}, ${JSON.stringify(description)});\n`,
    )
    .join("");

function entrypointsOf(script: CellScript): string {
  const { profile, classNames = [], hasWorkflows, objectClasses = [] } = script;
  if (profile === "snippet")
    return `export const Entry = ${identifier("sandbox/worker/snippet.js")}.entryOf(user.default);\n`;
  const entryOf = `${identifier("workers/runtime/worker/script.js")}.entryOf`;
  const rpcOf = `${identifier("workers/runtime/worker/rpc.js")}.rpcOf`;
  const main = isServiceWorker(script) ? "handlers()" : "user.default";
  return [
    `const main = ${main};\nexport const Entry = ${entryOf}(main), Rpc = ${rpcOf}(main, Entry);\n`,
    ...(hasWorkflows === true
      ? [
          `export const WorkflowInvocations = ${identifier("products/workflows/worker/entry.js")}.invocationsOf(user);\n`,
        ]
      : []),
    ...objectClasses.map((name, i) => {
      const made = `${identifier(objectModule)}.objectOf(user[${JSON.stringify(name)}], ${JSON.stringify(name)})`;
      return `const object${i} = ${made};\nexport { object${i} as ${JSON.stringify(`Object:${name}`)} };\n`;
    }),
    ...classNames.map((name, i) => {
      const user = `user[${JSON.stringify(name)}]`;
      const names = [
        `entry${i} as ${JSON.stringify(`Entry:${name}`)}`,
        `rpc${i} as ${JSON.stringify(`Rpc:${name}`)}`,
      ];
      return `const entry${i} = ${entryOf}(${user}), rpc${i} = ${rpcOf}(${user}, entry${i});\nexport { ${names.join(", ")} };\n`;
    }),
    ...(objectClasses.length > 0 ? classNames : []).map((name, i) => {
      const text = JSON.stringify(name);
      const made = `${identifier(objectModule)}.facetOf(user[${text}], ${text}, entry${i})`;
      return `const facet${i} = ${made};\nexport { facet${i} as ${JSON.stringify(`Object:${name}`)} };\n`;
    }),
  ].join("");
}
