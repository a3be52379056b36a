import { invalidContent } from "../errors.ts";
import { refuseMembers, type RecordType } from "./type.ts";

const lengthMax = 2048;
const stringsMax = 255;
const chunkBytesMax = 255;

/**
 * TXT. Unquoted text is stored in quotes. Quoted text keeps its strings and escapes. On the wire, each string
 * has at most 255 bytes: see `textChunks`.
 */
export const TXT: RecordType = {
  parse(input) {
    refuseMembers("TXT", input);
    const fault = (what: string): Error => invalidContent("TXT", what, input.content);
    const text = input.content?.trim() ?? "";
    if (text === "") throw fault("text, or quoted text,");
    // oxlint-disable-next-line no-control-regex
    if (/[\u0000-\u001f\u007f]/.test(text) || !text.isWellFormed()) {
      throw fault("text without control characters, which are written \\DDD,");
    }
    const strings = quotedStrings(
      text.startsWith('"') ? text : `"${text.replace(/(\\.)|"/gs, escapeQuote)}"`,
    );
    if (strings === undefined) throw fault("text whose quotes and escapes are complete");
    if (strings.length > stringsMax)
      throw fault(`text of at most ${stringsMax} strings, not ${strings.length},`);
    const content = strings.map((string) => `"${string}"`).join(" ");
    const length = textLength(content);
    if (length > lengthMax) throw fault(`text of at most ${lengthMax} characters, not ${length},`);
    return { content };
  },
};

const escapeQuote = (match: string, escape?: string): string => escape ?? `\\${match}`;

/** The strings inside `"…" "…"`, with their escapes; undefined if quotes or escapes are incomplete. */
export function quotedStrings(text: string): string[] | undefined {
  const strings: string[] = [];
  const pattern = /\s*"((?:[^"\\]|\\[^0-9]|\\(?:[01]\d\d|2[0-4]\d|25[0-5]))*)"\s*/suy;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (match === null) return undefined;
    strings.push(match[1]!);
  }
  return strings;
}

/** The number of characters of a TXT record's content, without quotes. An escape counts as one. */
export const textLength = (content: string): number =>
  (quotedStrings(content) ?? []).reduce(
    (sum, string) => sum + Array.from(string.replace(/\\(\d{3}|.)/gsu, "-")).length,
    0,
  );

/** The strings of a TXT record on the wire, of at most 255 bytes each. */
export function textChunks(content: string): Uint8Array[] {
  return (quotedStrings(content) ?? []).flatMap((string) => {
    const bytes = bytesOf(string);
    const chunks: Uint8Array[] = [];
    for (let at = 0; at === 0 || at < bytes.length; at += chunkBytesMax) {
      chunks.push(bytes.subarray(at, at + chunkBytesMax));
    }
    return chunks;
  });
}

function bytesOf(string: string): Uint8Array {
  const parts: Buffer[] = [];
  for (const [, number, other, plain] of string.matchAll(/\\(\d{3})|\\(.)|([^\\]+)/gsu)) {
    parts.push(number === undefined ? Buffer.from(other ?? plain ?? "") : Buffer.from([Number(number)]));
  }
  return Buffer.concat(parts);
}
