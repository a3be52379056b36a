import { dnsErrors } from "../errors.ts";
import { parseHost } from "./host.ts";
import type { RecordType, Value, ValueInput } from "./type.ts";

/** One member of a structured record: how a value is checked, and how it stands in `content`. */
export interface Field {
  name: string;
  /** What is expected, in words. */
  expected: string;
  /** The value in its canonical form, from a client's JSON or from text; undefined when it is not one. */
  parse(value: unknown): unknown;
  print(value: unknown): string;
  /** Takes all remaining words of the content, joined: hex and base64 may be broken up there. */
  isRest?: boolean;
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

export const uint = (name: string, max: number): Field => ({
  name,
  expected: `a whole number from 0 to ${max}`,
  parse(value) {
    const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : value;
    return typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= max
      ? number
      : undefined;
  },
  print: String,
});
export const uint8 = (name: string): Field => uint(name, 255);
export const uint16 = (name: string): Field => uint(name, 65_535);

export const hex = (name: string): Field => ({
  name,
  expected: "an even number of hexadecimal digits",
  isRest: true,
  parse: (value) => (/^([0-9a-f]{2})+$/i.test(text(value) ?? "") ? text(value)!.toLowerCase() : undefined),
  print: String,
});

export const base64 = (name: string): Field => ({
  name,
  expected: "base64 text",
  isRest: true,
  parse(value) {
    const bare = text(value)?.replace(/\s+/g, "") ?? "";
    return bare !== "" && bare.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(bare) ? bare : undefined;
  },
  print: String,
});

export const host = (name: string, allow: { underscore?: boolean; root?: boolean }): Field => ({
  name,
  expected: "a host name",
  parse: (value) => parseHost(text(value) ?? "", allow),
  print: String,
});

/** Text that stands in quotes in `content`. */
export const quoted = (name: string, pattern = /^[^\r\n]*$/, expected = "text"): Field => ({
  name,
  expected,
  parse: (value) =>
    pattern.test(text(value) ?? "\n") && text(value)!.length <= 1024 ? text(value) : undefined,
  print: (value) => `"${String(value).replace(/[\\"]/g, "\\$&")}"`,
});

export const word = (
  name: string,
  pattern: RegExp,
  expected: string,
  canonical = (value: string): string => value,
): Field => ({
  name,
  expected,
  parse: (value) => (pattern.test(text(value) ?? "") ? canonical(text(value)!) : undefined),
  print: String,
});

/** A type whose value is a row of fields. `check` names a fault among values that are each right. */
export function structured(
  type: string,
  fields: readonly Field[],
  more: {
    check?: (data: Record<string, unknown>) => { field: string; expected: string } | undefined;
    /** This field stands in the record's `priority` rather than in its content (it is in `data` all the same, unless bare). */
    priority?: "in-data" | "bare";
  } = {},
): RecordType {
  const priority = uint16("priority");
  const all = more.priority === undefined ? fields : [priority, ...fields];
  return {
    parse(input: ValueInput): Value {
      const raw =
        input.data === undefined
          ? fromContent(type, input, fields, more.priority !== undefined)
          : fromData(type, input, all, more.priority === "bare");
      const data: Record<string, unknown> = {};
      for (const field of all) {
        const value = field.parse(raw[field.name]);
        if (value === undefined) {
          if (input.data === undefined)
            throw dnsErrors.invalidContent(
              type,
              `of the form "${all.map((f) => f.name).join(" ")}", with ${field.expected} for ${field.name},`,
              input.content,
            );
          throw dnsErrors.invalidData(type, field.name, field.expected, raw[field.name]);
        }
        data[field.name] = value;
      }
      const fault = more.check?.(data);
      if (fault !== undefined) {
        if (input.data === undefined)
          throw dnsErrors.invalidContent(
            type,
            `a value with ${fault.expected} for ${fault.field}`,
            input.content,
          );
        throw dnsErrors.invalidData(type, fault.field, fault.expected, data[fault.field]);
      }
      const content = fields.map((field) => field.print(data[field.name])).join(" ");
      if (more.priority === undefined) return { content, data };
      const { priority: number, ...rest } = data as { priority: number };
      return { content, data: more.priority === "bare" ? rest : data, priority: number };
    },
  };
}

function fromData(
  type: string,
  input: ValueInput,
  fields: readonly Field[],
  priorityIsBare: boolean,
): Record<string, unknown> {
  const names = new Set(fields.map((field) => field.name));
  for (const name of Object.keys(input.data!)) {
    if (!names.has(name))
      throw dnsErrors.invalidData(
        type,
        name,
        `only ${[...names].join(", ")}, not this member,`,
        input.data![name],
      );
  }
  const needsPriority = names.has("priority") && (priorityIsBare || input.data!["priority"] === undefined);
  return needsPriority
    ? { ...input.data, priority: input.data!["priority"] ?? input.priority }
    : { ...input.data };
}

function fromContent(
  type: string,
  input: ValueInput,
  fields: readonly Field[],
  hasPriority: boolean,
): Record<string, unknown> {
  const words = splitWords(input.content ?? "");
  if (words === undefined)
    throw dnsErrors.invalidContent(type, "text whose quotes are complete", input.content);
  const raw: Record<string, unknown> = {};
  if (hasPriority) raw["priority"] = words.length > fields.length ? words.shift() : input.priority;
  for (const field of fields)
    raw[field.name] = field.isRest === true ? words.splice(0).join("") : words.shift();
  if (words.length > 0) {
    throw dnsErrors.invalidContent(
      type,
      `of the form "${fields.map((field) => field.name).join(" ")}"`,
      input.content,
    );
  }
  return raw;
}

/** Words separated by white space; quoted ones may hold some, and lose their quotes. Undefined when a quote is left open. */
export function splitWords(content: string): string[] | undefined {
  const words: string[] = [];
  const pattern = /\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))(?=\s|$)\s*/sy;
  while (pattern.lastIndex < content.length) {
    const match = pattern.exec(content);
    if (match === null) return content.trim() === "" ? [] : undefined;
    words.push(match[1] === undefined ? match[2]! : match[1].replace(/\\(.)/gs, "$1"));
  }
  return words;
}
