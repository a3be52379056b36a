import { urlDecode } from "../functions/url.ts";

/** A name and a value. */
export type Pair = readonly [string, string];

/** Lower-case names with their values in order, from a flat list of names and values. */
export function headerMap(raw: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) append(headers, raw[i]!.toLowerCase(), raw[i + 1]!);
  return headers;
}

/** All values of a header, joined; "" if there are none. */
export function headerText(raw: readonly string[], name: string, separator = ", "): string {
  let text: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const candidate = raw[i]!;
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue;
    text = text === undefined ? raw[i + 1]! : `${text}${separator}${raw[i + 1]!}`;
  }
  return text ?? "";
}

/**
 * Removes spaces and tabs at both ends. `trim()` would also remove U+00A0, which is a byte of UTF-8 in these
 * texts.
 */
export function trimBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text[start])) start++;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

const isBlank = (character: string | undefined): boolean => character === " " || character === "\t";

/** Query or form arguments in order, without decoding. */
export function argumentPairs(query: string): Pair[] {
  return query.split("&").flatMap((pair): Pair[] => {
    if (pair === "") return [];
    const equals = pair.indexOf("=");
    return [equals === -1 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)]];
  });
}

/** Names with their values in order. */
export function mapOf(pairs: readonly Pair[]): Map<string, string[]> {
  const map = new Map<string, string[]>();
  for (const [name, value] of pairs) append(map, name, value);
  return map;
}

/** Cookies with decoded names and raw values. */
export function cookieMap(header: string): Map<string, string[]> {
  const cookies = new Map<string, string[]>();
  for (const part of header.split(";")) {
    const pair = trimBlanks(part);
    const equals = pair.indexOf("=");
    if (equals > 0) append(cookies, urlDecode(pair.slice(0, equals)), pair.slice(equals + 1));
  }
  return cookies;
}

/** Languages in order of preference, without `*`. */
export function acceptedLanguages(header: string): string[] {
  const languages = header.split(",").flatMap((part) => {
    const [tag = "", ...parameters] = part.split(";").map(trimBlanks);
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
    return tag === "" || tag === "*" ? [] : [{ tag, quality: Number(quality) || 0 }];
  });
  return languages.toSorted((a, b) => b.quality - a.quality).map(({ tag }) => tag);
}

/** The text after the last dot of the last segment, in lower case; "" if there is none. */
export function extensionOf(path: string): string {
  const file = path.slice(path.lastIndexOf("/") + 1);
  const dot = file.lastIndexOf(".");
  return dot === -1 ? "" : file.slice(dot + 1).toLowerCase();
}

function append(map: Map<string, string[]>, name: string, value: string): void {
  const values = map.get(name);
  if (values === undefined) map.set(name, [value]);
  else values.push(value);
}
