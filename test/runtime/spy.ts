/**
 * Code with which a script replaces every function and accessor that it can reach. After `install()` they
 * work as before, and record in `seen` each internal value that passes through them, as "function: value".
 * After `sabotage(seed, oneIn)` some of them misbehave.
 */
const body = (workers: string): string => `
const workers = ${workers};
const seen = new Set();
const { apply, construct, ownKeys, getOwnPropertyDescriptor, getPrototypeOf, defineProperty } = Reflect;
const { test: matches } = RegExp.prototype;
const { has, add } = Set.prototype, { get: mapGet, set: mapSet, has: mapHas } = Map.prototype;
const SafeMap = Map, describe = String;
const secret = /x-selvedge|selvedgeRun|channel-|__selvedge|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/;
let isQuiet = false;

/** The parts of a value that are visible without running code of others. */
function textOf(value, depth = 0) {
  if (typeof value === "string") return value;
  if (typeof value === "function" || typeof value !== "object" || value === null || depth > 2) return "";
  let text = "";
  try {
    const keys = ownKeys(value);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (typeof key === "string") text += key + " ";
      const descriptor = getOwnPropertyDescriptor(value, key);
      if (descriptor !== undefined && "value" in descriptor) text += textOf(descriptor.value, depth + 1) + " ";
    }
  } catch {}
  return text;
}
function noteOne(name, value) {
  if (value === seen) return;
  const text = textOf(value);
  if (apply(matches, secret, [text])) apply(add, seen, [name + ": " + text.slice(0, 120)]);
}
// No loops over iterables, and no spread: they would call what is replaced.
function note(name, self, values) {
  if (isQuiet) return;
  isQuiet = true;
  try {
    noteOne(name, self);
    for (let i = 0; i < values.length; i++) noteOne(name, values[i]);
  } finally { isQuiet = false; }
}
const wrapped = new SafeMap();
let wrapAs;
function wrap(native, name) {
  if (apply(mapHas, wrapped, [native])) return apply(mapGet, wrapped, [native]);
  const made = wrapAs === undefined ? spying(native, name) : wrapAs(native);
  apply(mapSet, wrapped, [native, made]);
  apply(mapSet, wrapped, [made, made]);
  return made;
}
function spying(native, name) {
  return new Proxy(native, {
    apply(target, self, args) { note(name, self, args); const result = apply(target, self, args); note(name + " gives", result, []); return result; },
    construct(target, args, made) { note("new " + name, undefined, args); return construct(target, args, made); },
  });
}
/** One in so many functions goes wrong from now on, in one of several ways. */
function sabotage(seed, oneIn) {
  let state = seed;
  const next = (below) => ((state = (state * 1103515245 + 12345) % 2147483648), state % 65536) % below;
  const ways = [
    () => { throw new Error("sabotage"); },
    () => undefined,
    (self, args) => args[0],
    (self) => self,
    () => "x-selvedge-run",
    () => ({ then: undefined, done: false, value: "\\n" }),
  ];
  wrapAs = (native) => {
    if (next(oneIn) !== 0) return native;
    const way = ways[next(ways.length)];
    const call = (target, self, args) => way(self, args);
    return new Proxy(native, { apply: call, construct: (target, args) => Object(way(undefined, args)) });
  };
  install();
}
const visited = new Set();
/** Functions that this module itself uses, or that the language calls by itself, so that no proxy can replace them. */
const kept = new Set(["constructor", "Proxy", "Reflect", "process"]);
function patch(object, path) {
  if (object === null || (typeof object !== "object" && typeof object !== "function") || apply(has, visited, [object])) return;
  apply(add, visited, [object]);
  if (path.length > 150) return;
  patch(getPrototypeOf(object), path + ".__proto__");
  for (const key of ownKeys(object)) {
    if (kept.has(key)) continue;
    const descriptor = getOwnPropertyDescriptor(object, key);
    const name = path + "." + describe(key);
    if (descriptor === undefined) continue;
    for (const part of ["value", "get", "set"]) {
      const value = descriptor[part];
      if (typeof value === "object" && value !== null) patch(value, name);
      if (typeof value !== "function" || apply(has, visited, [value])) continue;
      patch(value, name);
      if (descriptor.configurable || descriptor.writable) descriptor[part] = wrap(value, name);
    }
    if (descriptor.configurable) defineProperty(object, key, descriptor);
    else if (descriptor.writable) { try { object[key] = descriptor.value; } catch {} }
  }
}
const examples = [
  (function* () {})(), (async function* () {})(), async () => {}, [][Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](),
  "".matchAll(/a/g), new Headers()[Symbol.iterator](), new URLSearchParams()[Symbol.iterator](), new FormData()[Symbol.iterator](),
  ""[Symbol.iterator](), new Uint8Array(1), new ReadableStream().getReader(), new TransformStream().writable.getWriter(),
];
function install() {
  const [names, values] = [ownKeys(workers), []];
  for (let i = 0; i < names.length; i++) values[i] = workers[names[i]];
  patch(globalThis, "globalThis");
  for (let i = 0; i < names.length; i++) if (names[i] !== "env") patch(values[i], "workers." + describe(names[i]));
  for (let i = 0; i < examples.length; i++) patch(getPrototypeOf(examples[i]), "example" + i);
}
`;

/** At the top of a script; and of a snippet, which imports nothing. */
export const spy = `import * as imported from "cloudflare:workers";\n${body("imported")}`;
export const snippetSpy = body("{}");
