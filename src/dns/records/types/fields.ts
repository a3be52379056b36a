import { parseHost } from "./host.ts";
import { textOrEmpty } from "./type.ts";
import { quoteWord } from "./words.ts";

/** One field of a structured record: how its value is parsed, and how it is printed in `content`. */
export interface Field {
  name: string;
  /** The expected value, as a phrase for error messages. */
  expected: string;
  /** The value in canonical form, from JSON or text; undefined if it is invalid. */
  parse(value: unknown): unknown;
  print(value: unknown): string;
  /** Takes all remaining words of the content, joined, because hex and base64 may contain spaces there. */
  isRest?: boolean;
}

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

export const oneOf = (name: string, values: readonly number[]): Field => {
  const number = uint16(name);
  return {
    ...number,
    expected: values.length === 1 ? String(values[0]) : `one of ${values.join(", ")}`,
    parse(value) {
      const parsed = number.parse(value) as number | undefined;
      return parsed !== undefined && values.includes(parsed) ? parsed : undefined;
    },
  };
};

/** A number that may also be written as a word in zone files. */
export const mnemonic = (number: Field, words: Readonly<Record<string, number>>): Field => ({
  ...number,
  parse: (value) => number.parse(words[textOrEmpty(value).toUpperCase()] ?? value),
});

const withoutBlanks = (value: unknown): string => textOrEmpty(value).replace(/\s+/g, "");

export const hex = (name: string): Field => ({
  name,
  expected: "an even number of hexadecimal digits",
  isRest: true,
  parse(value) {
    const digits = withoutBlanks(value).toLowerCase();
    return digits !== "" && digits.length % 2 === 0 && /^[0-9a-f]+$/.test(digits) ? digits : undefined;
  },
  print: String,
});

export const parseBase64 = (value: unknown): string | undefined => {
  const text = withoutBlanks(value);
  return text !== "" && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
    ? Buffer.from(text, "base64").toString("base64")
    : undefined;
};
export const base64 = (name: string): Field => ({
  name,
  expected: "base64 text",
  isRest: true,
  parse: parseBase64,
  print: String,
});

export const host = (name: string): Field => ({
  name,
  expected: 'a host name or "."',
  parse: (value) => parseHost(textOrEmpty(value), { underscore: true, root: true }),
  print: String,
});

/** Printable ASCII text, quoted in `content`. */
export const quoted = (
  name: string,
  lengthMax: number,
  pattern = /^/,
  expected = `at most ${lengthMax} printable ASCII characters`,
): Field => ({
  name,
  expected,
  parse: (value) =>
    typeof value === "string" &&
    value.length <= lengthMax &&
    /^[\x20-\x7e]*$/.test(value) &&
    pattern.test(value)
      ? value
      : undefined,
  print: (value) => quoteWord(String(value)),
});

export const word = (name: string, pattern: RegExp, expected: string): Field => ({
  name,
  expected,
  parse: (value) => (pattern.test(textOrEmpty(value)) ? textOrEmpty(value).toLowerCase() : undefined),
  print: String,
});
