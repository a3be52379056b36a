import { urlDecode } from "../functions/url.ts";

/** Names in lower case with their values in order, from a flat list of names and values. */
export function headerMap(raw: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) append(headers, raw[i]!.toLowerCase(), raw[i + 1]!);
  return headers;
}

/** Every value of a header, joined as one; "" when there is none. */
export function headerText(raw: readonly string[], name: string, separator = ", "): string {
  let text: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const candidate = raw[i]!;
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue;
    text = text === undefined ? raw[i + 1]! : `${text}${separator}${raw[i + 1]!}`;
  }
  return text ?? "";
}

/** Query or form arguments as they are written, without decoding. */
export function argumentMap(query: string): Map<string, string[]> {
  const args = new Map<string, string[]>();
  if (query === "") return args;
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    append(args, equals === -1 ? pair : pair.slice(0, equals), equals === -1 ? "" : pair.slice(equals + 1));
  }
  return args;
}

/** Cookies with their names decoded and their values as they are. */
export function cookieMap(header: string): Map<string, string[]> {
  const cookies = new Map<string, string[]>();
  for (const part of header.split(";")) {
    const pair = part.trim();
    const equals = pair.indexOf("=");
    if (equals > 0) append(cookies, urlDecode(pair.slice(0, equals)), pair.slice(equals + 1));
  }
  return cookies;
}

/** Languages with the most wanted first; `*` is left out. */
export function acceptedLanguages(header: string): string[] {
  const languages = header.split(",").flatMap((part) => {
    const [tag = "", ...parameters] = part.split(";").map((text) => text.trim());
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
    return tag === "" || tag === "*" ? [] : [{ tag, quality: Number(quality) || 0 }];
  });
  return languages.toSorted((a, b) => b.quality - a.quality).map(({ tag }) => tag);
}

/** What stands after the last dot of the last segment, in lower case; "" when there is none. */
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
