import { dnsErrors, invalidContent, invalidPriority } from "../errors.ts";
import { uint16, type Field } from "./fields.ts";
import type { RecordType, RecordValue, ValueInput } from "./type.ts";
import { splitWords } from "./words.ts";

type Data = Record<string, unknown>;
/** A field whose value contradicts the others, and the value expected instead. */
export interface FieldFault {
  field: string;
  expected: string;
}

interface Options {
  check?: (data: Data) => FieldFault | undefined;
  /** The location of this type's priority: only in the record's `priority`, or in `data` too. */
  priority?: "beside-data" | "in-both";
}

const priorityField = uint16("priority");

/**
 * A type whose value is a sequence of fields. `check` finds contradictions between fields that are valid by
 * themselves.
 */
export function structured(type: string, fields: readonly Field[], options: Options = {}): RecordType {
  const all = options.priority === undefined ? fields : [priorityField, ...fields];
  return {
    parse(input) {
      const raw =
        input.data === undefined
          ? fromContent(type, input, fields, options)
          : fromData(type, input.data, input, all, options);
      const data: Data = {};
      for (const field of all) {
        const value = field.parse(raw[field.name]);
        if (value === undefined) throw fault(type, input, all, options, field.name, field.expected, raw);
        data[field.name] = value;
      }
      const wrong = options.check?.(data);
      if (wrong !== undefined) throw fault(type, input, all, options, wrong.field, wrong.expected, raw);
      return valueOf(data, fields, options);
    },
  };
}

function valueOf(data: Data, fields: readonly Field[], options: Options): RecordValue {
  const content = fields.map((field) => field.print(data[field.name])).join(" ");
  if (options.priority === undefined) return { content, data };
  const { priority, ...rest } = data as { priority: number };
  return { content, data: options.priority === "in-both" ? data : rest, priority };
}

function fromData(
  type: string,
  data: Readonly<Data>,
  input: ValueInput,
  fields: readonly Field[],
  options: Options,
): Data {
  const known = fields.map(({ name }) => name);
  for (const name of Object.keys(data)) {
    if (!known.includes(name)) throw dnsErrors.unknownData(type, name, known);
  }
  return options.priority === undefined ? data : { ...data, priority: data["priority"] ?? input.priority };
}

function fromContent(type: string, input: ValueInput, fields: readonly Field[], options: Options): Data {
  const words = splitWords(input.content ?? "");
  if (words === undefined) {
    throw invalidContent(type, "text whose quotes and escapes are complete", input.content);
  }
  const raw: Data = {};
  if (options.priority !== undefined) {
    raw["priority"] = words.length > fields.length ? words.shift() : input.priority;
  }
  for (const field of fields) {
    raw[field.name] = field.isRest === true ? words.splice(0).join("") : words.shift();
  }
  if (words.length === 0) return raw;
  throw invalidContent(type, `of the form ${formOf(fields)}`, input.content);
}

const formOf = (fields: readonly Field[]): string => `"${fields.map(({ name }) => name).join(" ")}"`;

function fault(
  type: string,
  input: ValueInput,
  fields: readonly Field[],
  options: Options,
  name: string,
  expected: string,
  raw: Data,
): Error {
  const isBeside = name === "priority" && options.priority === "beside-data";
  if (isBeside && (input.data !== undefined || input.priority === undefined)) {
    return invalidPriority(raw[name]);
  }
  if (input.data !== undefined) return dnsErrors.invalidData(type, name, expected, raw[name]);
  const what = `of the form ${formOf(fields)}, with ${expected} for ${name},`;
  return invalidContent(type, what, input.content);
}
