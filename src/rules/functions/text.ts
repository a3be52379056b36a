import { formatIp } from "../values/ip.ts";
import type { Type, Value } from "../values/types.ts";
import { lowerAscii, upperAscii } from "../values/wildcard.ts";
import type { FunctionDefinition, FunctionParameter } from "./definition.ts";

const bytes: FunctionParameter = { types: ["Bytes"] };
const int: FunctionParameter = { types: ["Int"] };
const bytesField: FunctionParameter = { types: ["Bytes"], kind: "Field" };

/** A byte position counted from either end, clamped to 0 and `length`. */
function positionOf(index: Value, length: number): number {
  const number = Number(index);
  return number < 0 ? Math.max(0, length + number) : Math.min(number, length);
}

export const textFunctions: readonly FunctionDefinition[] = [
  { name: "lower", parameters: [bytes], returns: "Bytes", call: ([text]) => lowerAscii(text as string) },
  { name: "upper", parameters: [bytes], returns: "Bytes", call: ([text]) => upperAscii(text as string) },
  {
    name: "len",
    parameters: [{ types: ["Array", "Bytes"] }],
    returns: "Int",
    call: ([value]) => (value as string | readonly Value[]).length,
  },
  {
    name: "starts_with",
    parameters: [bytesField, bytes],
    returns: "Bool",
    call: ([text, start]) => (text as string).startsWith(start as string),
  },
  {
    name: "ends_with",
    parameters: [bytesField, bytes],
    returns: "Bool",
    call: ([text, end]) => (text as string).endsWith(end as string),
  },
  {
    name: "concat",
    parameters: [{ types: ["Array", "Bytes"] }, { types: ["Array", "Bytes"] }],
    variadic: true,
    sameTypes: true,
    returns: ([first]) => first?.type ?? ("Bytes" satisfies Type),
    acceptsMissing: true,
    call: (args) => {
      const present = args.filter((arg) => arg !== undefined);
      if (present.length === 0) return undefined;
      return typeof present[0] === "string"
        ? (present as string[]).join("")
        : present.flatMap((arg) => arg as readonly Value[]);
    },
  },
  {
    name: "substring",
    parameters: [bytes, int, int],
    optional: 1,
    returns: "Bytes",
    call: ([text, start, end]) => {
      const { length } = text as string;
      const from = positionOf(start!, length);
      return (text as string).slice(
        from,
        Math.max(from, end === undefined ? length : positionOf(end, length)),
      );
    },
  },
  {
    name: "remove_bytes",
    parameters: [bytes, bytes],
    returns: "Bytes",
    call: ([text, unwanted]) => {
      const [bytes, drop] = [text as string, new Uint8Array(256)];
      for (let i = 0; i < (unwanted as string).length; i++) drop[(unwanted as string).charCodeAt(i)] = 1;
      let [kept, from] = ["", 0];
      for (let i = 0; i < bytes.length; i++) {
        if (drop[bytes.charCodeAt(i)] === 0) continue;
        kept += bytes.slice(from, i);
        from = i + 1;
      }
      return kept + bytes.slice(from);
    },
  },
  {
    name: "to_string",
    parameters: [{ types: ["Bool", "Int", "Ip"] }],
    returns: "Bytes",
    prepare: ([arg]) => arg?.type,
    call: ([value], type) =>
      type === "Ip" ? formatIp(value as string | number) : `${value as number | bigint | boolean}`,
  },
  {
    name: "split",
    parameters: [
      bytes,
      {
        types: ["Bytes"],
        kind: "Literal",
        check: (value) => (value === "" ? "separator must not be empty" : undefined),
      },
      {
        types: ["Int"],
        kind: "Literal",
        check: (value) =>
          (value as number) >= 1 && (value as number) <= 128
            ? undefined
            : `limit must be an integer between 1 and 128, but got ${Number(value)}`,
      },
    ],
    returns: "Array(Bytes)",
    call: ([text, separator, limit]) => {
      const parts = (text as string).split(separator as string);
      const most = Number(limit);
      if (parts.length <= most) return parts;
      return [...parts.slice(0, most - 1), parts.slice(most - 1).join(separator as string)];
    },
  },
  {
    name: "join",
    parameters: [{ types: ["Array(Bytes)"] }, bytes],
    returns: "Bytes",
    moreWork: ([items, separator]) =>
      (items as readonly string[]).reduce((sum, item) => sum + item.length + (separator as string).length, 0),
    call: ([items, separator]) => (items as readonly string[]).join(separator as string),
  },
];
