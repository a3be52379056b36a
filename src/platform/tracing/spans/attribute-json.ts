import { asciiJson } from "../../util/ascii-json.ts";

/*
 * The JSON of attributes in OTLP, in ASCII. It is built when an attribute is set, so that a span holds only
 * one text until it ends.
 */

export type AttributeValue = string | number | boolean;

/** A limit, because visitors choose paths and names of user agents. */
const textLengthMax = 1024;
/** Printable ASCII without quotation marks and backslashes, which JSON writes as it is. */
const plain = /^[ !#-[\]-~]*$/;

/** A text as written in JSON, without its quotation marks. */
export const innerJson = (text: string): string =>
  plain.test(text) ? text : asciiJson(text.toWellFormed()).slice(1, -1);

type Beginnings = Map<string, string>;
/** The beginnings of attributes, by name. There are few names: those of the program and of settings. */
const texts: Beginnings = new Map();
const integers: Beginnings = new Map();

function beginningOf(known: Beginnings, name: string, type: string): string {
  let beginning = known.get(name);
  if (beginning === undefined)
    known.set(name, (beginning = `,{"key":${asciiJson(name)},"value":{"${type}":"`));
  return beginning;
}

/** A comma and the JSON of a KeyValue. */
export function attributeJson(name: string, value: AttributeValue): string {
  if (typeof value === "string") {
    const shown = value.length > textLengthMax ? value.slice(0, textLengthMax) : value;
    return `${beginningOf(texts, name, "stringValue")}${innerJson(shown)}"}}`;
  }
  if (Number.isSafeInteger(value)) return `${beginningOf(integers, name, "intValue")}${value}"}}`;
  const type = typeof value === "boolean" ? "boolValue" : "doubleValue";
  return `,{"key":${asciiJson(name)},"value":{"${type}":${value}}}`;
}
