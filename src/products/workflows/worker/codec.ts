// Taken before a script's code runs, which may replace globals.
const { parse, stringify } = JSON;

/**
 * Encodes values for the journal as text: plain JSON ("j…") when JSON restores exactly the same value, and
 * otherwise ("t…") JSON in which each non-primitive is an array that starts with its kind. The customer's
 * isolate decodes it; the engine only displays it.
 */
export function encode(value: unknown, what: string): string {
  return isPlain(value) ? `j${stringify(value)}` : `t${stringify(tag(value, "", new Set(), what))}`;
}

/** Restores the value from a text of `encode`. */
export function decode(text: string): unknown {
  const parsed = parse(text.slice(1)) as unknown;
  return text.startsWith("j") ? parsed : untag(parsed);
}

/**
 * The size that counts towards the limit of a value: bytes of its text, with binary data counted before
 * base64.
 */
export function encodedBytes(text: string): number {
  let bytes = text.length - 1;
  // oxlint-disable-next-line no-control-regex -- every character beyond ASCII is more than one byte
  if (/[^\x00-\x7f]/.test(text)) bytes = new TextEncoder().encode(text).length - 1;
  if (text.startsWith("t")) {
    for (const [, base64] of text.matchAll(/\["bytes","\w+","([A-Za-z0-9+/=]*)"\]/g))
      bytes -= base64!.length >> 2;
  }
  return bytes;
}

/** Thrown for values that cannot be stored; the message has the path in the value. */
export class NotSerializableError extends TypeError {
  override readonly name = "NotSerializableError";
}

const depthMax = 1000;

/** Whether JSON restores the value exactly. */
function isPlain(value: unknown, depth = 0): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > depthMax) return false; // probably a cycle; tag() reports it
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value) as unknown;
  if (prototype !== Object.prototype && prototype !== null) return false;
  if (Object.getOwnPropertySymbols(value).length > 0) return false;
  for (const key of Object.keys(value)) {
    if (!isPlain((value as Record<string, unknown>)[key], depth + 1)) return false;
  }
  return true;
}

const views = {
  Uint8Array,
  Int8Array,
  Uint8ClampedArray,
  Uint16Array,
  Int16Array,
  Uint32Array,
  Int32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
};
interface ViewConstructor {
  BYTES_PER_ELEMENT?: number;
  new (buffer: ArrayBuffer, offset: number, length: number): ArrayBufferView;
}
const errors = { Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };

function tag(given: unknown, path: string, above: Set<object>, what: string): unknown {
  const refuse = (found: string): never => {
    throw new NotSerializableError(
      `${what} is not serialisable: ${path === "" ? "it" : `the value at ${path}`} is ${found}`,
    );
  };
  switch (typeof given) {
    case "string":
    case "boolean":
      return given;
    case "number":
      return Number.isFinite(given) && !Object.is(given, -0)
        ? given
        : ["number", Object.is(given, -0) ? "-0" : String(given)];
    case "undefined":
      return ["undefined"];
    case "bigint":
      return ["bigint", String(given)];
    case "symbol":
      return refuse("a symbol");
    case "function":
      return refuse("a function");
    default:
  }
  if (given === null) return null;
  const value: object = given as object;
  if (above.has(value)) refuse("a circular reference");
  if (above.size > depthMax) refuse("nested too deeply");
  if (value instanceof Date) return ["date", value.getTime()];
  if (value instanceof RegExp) return ["regexp", value.source, value.flags];
  if (value instanceof ArrayBuffer) return ["bytes", "ArrayBuffer", base64(new Uint8Array(value))];
  if (ArrayBuffer.isView(value)) {
    const name =
      Object.keys(views).find((each) => value.constructor.name === each) ??
      refuse(`a ${value.constructor.name}`);
    return ["bytes", name, base64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))];
  }
  above.add(value);
  const tagged = tagContents(value, (each, suffix) => tag(each, `${path}${suffix}`, above, what), refuse);
  above.delete(value);
  return tagged;
}

/** The tagged form of an object that holds other values. `inside` tags one of them, for its path below the object. */
function tagContents(
  value: object,
  inside: (each: unknown, suffix: string) => unknown,
  refuse: (found: string) => never,
): unknown[] {
  if (Array.isArray(value)) return ["array", ...Array.from(value, (each, i) => inside(each, `[${i}]`))];
  if (value instanceof Map) {
    return [
      "map",
      ...[...value].flatMap(([key, each], i) => [
        inside(key, `.keys()[${i}]`),
        inside(each, `.get(${show(key)})`),
      ]),
    ];
  }
  if (value instanceof Set) return ["set", ...[...value].map((each, i) => inside(each, `.values()[${i}]`))];
  if (value instanceof Error) {
    const more = value.cause === undefined ? [] : [inside(value.cause, ".cause")];
    return ["error", value.name, value.message, value.stack ?? "", ...more];
  }
  const prototype = Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null;
  if (prototype !== Object.prototype && prototype !== null)
    refuse(`an instance of ${prototype.constructor?.name ?? "a class"}`);
  if (Object.getOwnPropertySymbols(value).length > 0) refuse("an object with a symbol for a key");
  return ["object", ...Object.entries(value).flatMap(([key, each]) => [key, inside(each, `.${key}`)])];
}

function untag(tagged: unknown): unknown {
  if (!Array.isArray(tagged)) return tagged;
  const [kind, ...rest] = tagged as [string, ...unknown[]];
  switch (kind) {
    case "number":
      return Number(rest[0]);
    case "undefined":
      return undefined;
    case "bigint":
      return BigInt(rest[0] as string);
    case "date":
      return new Date(rest[0] === null ? Number.NaN : (rest[0] as number));
    case "regexp":
      return new RegExp(rest[0] as string, rest[1] as string);
    case "bytes": {
      const bytes = fromBase64(rest[1] as string);
      if (rest[0] === "ArrayBuffer") return bytes.buffer;
      const view = views[rest[0] as keyof typeof views] as ViewConstructor;
      const size = view.BYTES_PER_ELEMENT ?? 1;
      return new view(bytes.buffer, 0, bytes.byteLength / size);
    }
    case "array":
      return rest.map(untag);
    case "map":
      return new Map(pairs(rest).map(([key, value]) => [untag(key), untag(value)]));
    case "set":
      return new Set(rest.map(untag));
    case "error": {
      const [name, message, stack, cause] = rest as [string, string, string, unknown];
      return makeError(name, message, stack, rest.length > 3 ? untag(cause) : undefined);
    }
    default: {
      const object: Record<string, unknown> = {};
      for (const [key, value] of pairs(rest)) {
        // Defines "__proto__" as an own property.
        Object.defineProperty(object, key as string, {
          value: untag(value),
          writable: true,
          enumerable: true,
          configurable: true,
        });
      }
      return object;
    }
  }
}

/** Restores an error with its standard class, if it has one. */
export function makeError(name: string, message: string, stack?: string, cause?: unknown): Error {
  const standard = errors[name as keyof typeof errors] ?? Error;
  const error = new standard(message, cause === undefined ? undefined : { cause });
  if (error.name !== name)
    Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  if (stack !== undefined && stack !== "")
    Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true });
  return error;
}

function* chunks(bytes: Uint8Array): Generator<string> {
  for (let at = 0; at < bytes.length; at += 0x8000)
    yield String.fromCharCode(...bytes.subarray(at, at + 0x8000));
}
const base64 = (bytes: Uint8Array): string => btoa([...chunks(bytes)].join(""));
const fromBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const pairs = (flat: unknown[]): [unknown, unknown][] =>
  Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
const show = (key: unknown): string => (typeof key === "string" ? stringify(key) : String(key));
