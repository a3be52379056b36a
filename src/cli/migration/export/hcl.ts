/** A reference or a call, which is written as it stands. It never contains text of an account. */
export class HclExpression {
  readonly code: string;
  constructor(code: string) {
    this.code = code;
  }
}
export type HclValue =
  | string
  | number
  | boolean
  | null
  | HclExpression
  | readonly HclValue[]
  | { readonly [name: string]: HclValue | undefined };
export type HclAttributes = { readonly [name: string]: HclValue | undefined };

/** A string of HCL. `${` and `%{` would begin a template, so their first character is escaped. */
export const hclString = (text: string): string =>
  `"${text.toWellFormed().replace(/[$%](?=\{)|["\\]|[\p{Cc}\p{Zl}\p{Zp}\u{feff}]/gu, escaped)}"`;

function escaped(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`;
  if (character === "\n") return "\\n";
  return `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`;
}

/** A block with labels: `resource "type" "label" { … }`. */
export function hclBlock(kind: string, labels: readonly string[], attributes: HclAttributes): string {
  const head = [kind, ...labels.map(hclString)].join(" ");
  return `${head} {\n${lines(attributes, "  ", identifier)}}\n`;
}

function lines(attributes: HclAttributes, indent: string, name: (text: string) => string): string {
  return Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${indent}${name(key)} = ${valueOf(value!, indent)}\n`)
    .join("");
}

function valueOf(value: HclValue, indent: string): string {
  if (value instanceof HclExpression) return value.code;
  if (typeof value === "string") return hclString(value);
  if (value === null || typeof value !== "object") return String(value);
  const inner = `${indent}  `;
  if (isList(value))
    return value.length === 0
      ? "[]"
      : `[\n${value.map((each) => `${inner}${valueOf(each, inner)},\n`).join("")}${indent}]`;
  const content = lines(value, inner, objectKey);
  return content === "" ? "{}" : `{\n${content}${indent}}`;
}

const isList = (value: object): value is readonly HclValue[] => Array.isArray(value);
const identifierPattern = /^[a-z_][a-z0-9_]*$/i;

/** Names of attributes are those of the provider, and never text of an account. */
function identifier(name: string): string {
  if (identifierPattern.test(name)) return name;
  throw new Error(`Expected an identifier of HCL but received ${JSON.stringify(name)}`);
}

/** `for` and the words of constants would not be keys. */
const objectKey = (name: string): string =>
  identifierPattern.test(name) && !/^(?:for|true|false|null)$/.test(name) ? name : hclString(name);
