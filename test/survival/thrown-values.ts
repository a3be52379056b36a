import type { Random } from "../name-server/random.ts";

/** A description of a value to throw, as JSON for a script. */
export interface ThrownSpec {
  base: string;
  /** Properties to set, if the value accepts them. */
  fields: Record<string, { text: string } | { kind: string }>;
}

/** Creates the value of a spec. Runs in scripts. */
export const makeModule = String.raw`
const fail = () => { throw new Error("a trap"); };
const traps = new Proxy({}, { get: () => fail });
const overflow = () => { try { const again = () => again() + 1; again(); } catch (error) { return error; } };
const cyclic = () => { const error = new Error("cyclic"); error.cause = error; return error; };
const deep = () => { let error; for (let i = 0; i < 5000; i++) error = new Error("deep " + i, { cause: error }); return error; };
const revoked = () => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy; };
class Odd extends Error { static [Symbol.hasInstance]() { throw new Error("no instance"); } }
const bases = {
  undefined: () => undefined, null: () => null, false: () => false, zero: () => 0, nan: () => NaN,
  empty: () => "", text: () => "text", half: () => "\ud800", symbol: () => Symbol("s"), "bare symbol": () => Symbol(),
  bigint: () => 10n, function: () => () => {}, class: () => class {}, object: () => ({}), array: () => [1],
  "no prototype": () => Object.create(null), "error-like": () => ({ name: 1, message: {}, stack: [] }),
  "bad toString": () => ({ toString: fail, valueOf: fail, [Symbol.toPrimitive]: fail }), "bad toJSON": () => ({ toJSON: fail }),
  date: () => new Date(NaN), map: () => new Map([[1, 2]]), buffer: () => new Uint8Array(8), regexp: () => /x/,
  response: () => new Response("x"), request: () => new Request("http://a/"), stream: () => new ReadableStream(),
  proxy: () => new Proxy({}, traps), "proxy of an error": () => new Proxy(new Error("x"), traps),
  "proxy of a function": () => new Proxy(() => {}, traps), revoked, thenable: () => ({ then: fail }),
  "thenable getter": () => ({ get then() { return fail(); } }),
  error: () => new Error("an error"), typeError: () => new TypeError("a type"), overflow, cyclic, deep,
  domException: () => new DOMException("dom", "AbortError"), aggregate: () => new AggregateError([new Error("\ud800"), 1n], "all"),
  frozen: () => Object.freeze(new Error("frozen")), "error without prototype": () => Object.setPrototypeOf(new Error("x"), null),
  "error of nothing": () => Object.setPrototypeOf(new Error("x"), new Proxy({}, traps)), odd: () => new Odd("odd"),
  "no stack": () => { const error = new Error("x"); delete error.stack; return error; },
};
const kinds = {
  undefined: () => undefined, symbol: () => Symbol("s"), object: () => ({ toString: fail }), number: () => -0, bigint: () => 1n,
  huge: () => "h".repeat(10_000_000), halves: () => "\ud800".repeat(20_000), euros: () => "€".repeat(20_000), self: (value) => value,
};
export const baseNames = Object.keys(bases);
export function make({ base, fields }) {
  const value = bases[base]();
  for (const [name, field] of Object.entries(fields)) {
    try {
      if (field.kind === "getter") Object.defineProperty(value, name, { get: fail });
      else Object.defineProperty(value, name, { value: field.kind === undefined ? field.text : kinds[field.kind](value), configurable: true });
    } catch {}
  }
  return value;
}`;

export const bases: readonly string[] = [
  ...[
    "undefined",
    "null",
    "false",
    "zero",
    "nan",
    "empty",
    "text",
    "half",
    "symbol",
    "bare symbol",
    "bigint",
  ],
  ...[
    "function",
    "class",
    "object",
    "array",
    "no prototype",
    "error-like",
    "bad toString",
    "bad toJSON",
    "date",
  ],
  ...["map", "buffer", "regexp", "response", "request", "stream", "proxy", "proxy of an error"],
  ...[
    "proxy of a function",
    "revoked",
    "thenable",
    "thenable getter",
    "error",
    "typeError",
    "overflow",
    "cyclic",
  ],
  ...[
    "deep",
    "domException",
    "aggregate",
    "frozen",
    "error without prototype",
    "error of nothing",
    "odd",
    "no stack",
  ],
];
const fieldKinds = [
  "getter",
  "undefined",
  "symbol",
  "object",
  "number",
  "bigint",
  "halves",
  "euros",
  "self",
  "huge",
];
const texts = [
  ...[
    "\ud800",
    "a\udc00b",
    "\udbff\udfff\ud800",
    "€",
    "a\r\nx-evil: y",
    "a\nb",
    "\0",
    "",
    " ",
    "é",
    "😀",
    "\u2028",
  ],
  ...["__proto__", "%E0%A4%A", "\t", "NonRetryableError", "CpuLimit", "x".repeat(5000), "�"],
];

/** Values that caused harm before, or similar ones. Every handler throws each of them. */
export const sharpSpecs: readonly ThrownSpec[] = [
  { base: "error", fields: { message: { text: "a\udc00b" } } },
  { base: "error", fields: { name: { text: "€" }, message: { text: "\ud800" } } },
  { base: "error", fields: { name: { text: "a\r\nx-evil: y" } } },
  {
    base: "error",
    fields: { name: { kind: "symbol" }, message: { kind: "object" }, stack: { kind: "getter" } },
  },
  { base: "error", fields: { message: { kind: "euros" }, name: { kind: "halves" } } },
  { base: "revoked", fields: {} },
];

/** Each base value, and an error with each unusual text or type in each property that is passed on. */
export const wholeSpecs: readonly ThrownSpec[] = [
  ...bases.map((base) => ({ base, fields: {} })),
  ...["name", "message", "stack", "cause"].flatMap((field) =>
    [...texts.map((text) => ({ text })), ...fieldKinds.map((kind) => ({ kind }))].map((value) => ({
      base: "error",
      fields: { [field]: value },
    })),
  ),
];

export function randomSpec(random: Random): ThrownSpec {
  const isError = random.chance(60);
  const fields: ThrownSpec["fields"] = {};
  for (const name of ["name", "message", "stack", "cause", "toString", "code", "remote"])
    if (random.chance(isError ? 35 : 10))
      fields[name] = random.chance(70) ? { text: random.pick(texts) } : { kind: random.pick(fieldKinds) };
  return {
    base: isError ? random.pick(["error", "typeError", "odd", "domException"]) : random.pick(bases),
    fields,
  };
}
