import { encodeUtf8, intOf, type Value } from "../values/types.ts";
import type { FunctionDefinition, FunctionParameter } from "./definition.ts";

const key: FunctionParameter = { types: ["Bytes", "Int"] };
const source: FunctionParameter = { types: ["Bytes"], kind: "Field" };

/** A number in its source form, which preserves 42.0 and large integers. */
class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The value at the keys; undefined if the document is not valid JSON or has no such value. */
function lookup(args: readonly (Value | undefined)[]): unknown {
  let value: unknown;
  try {
    const text = Buffer.from(args[0] as string, "latin1").toString("utf8");
    value = JSON.parse(text, (_key, parsed: unknown, context?: { source?: string }) =>
      typeof parsed === "number" ? new JsonNumber(context?.source ?? String(parsed)) : parsed,
    );
  } catch {
    return undefined;
  }
  for (const arg of args.slice(1)) {
    if (Array.isArray(value)) {
      value = typeof arg === "number" ? (value as unknown[])[arg] : undefined;
    } else if (typeof value === "object" && value !== null && !(value instanceof JsonNumber)) {
      const name = typeof arg === "string" ? Buffer.from(arg, "latin1").toString("utf8") : undefined;
      value =
        name !== undefined && Object.hasOwn(value, name)
          ? (value as Record<string, unknown>)[name]
          : undefined;
    } else {
      return undefined;
    }
  }
  return value;
}

export const jsonFunctions: readonly FunctionDefinition[] = [
  {
    name: "lookup_json_string",
    parameters: [source, key],
    variadic: true,
    returns: "Bytes",
    call: (args) => {
      const value = lookup(args);
      return typeof value === "string" ? encodeUtf8(value) : undefined;
    },
  },
  {
    name: "lookup_json_integer",
    parameters: [source, key],
    variadic: true,
    returns: "Int",
    call: (args) => {
      const value = lookup(args);
      if (!(value instanceof JsonNumber) || !/^-?\d{1,19}$/.test(value.text)) return undefined;
      const integer = BigInt(value.text);
      return BigInt.asIntN(64, integer) === integer ? intOf(integer) : undefined;
    },
  },
];
