import { dnsErrors } from "../errors.ts";
import type { RecordType } from "./type.ts";

const lengthMax = 2048;
const chunkBytesMax = 255;

/**
 * Text that was given bare is kept in quotes; text that was given in quotes keeps its division into strings.
 * Either way the strings on the wire have at most 255 bytes: see `textChunks`.
 */
export const TXT: RecordType = {
  parse({ content }) {
    const text = content ?? "";
    if (text.length > lengthMax)
      throw dnsErrors.invalidContent("TXT", `at most ${lengthMax} characters`, text);
    // oxlint-disable-next-line no-control-regex
    if (/\u0000/.test(text)) throw dnsErrors.invalidContent("TXT", "text without NUL characters", text);
    const trimmed = text.trim();
    if (trimmed.startsWith('"')) {
      if (quotedStrings(trimmed) === undefined) {
        throw dnsErrors.invalidContent("TXT", "text whose quotes and escapes are complete", text);
      }
      return { content: trimmed };
    }
    if (trimmed === "") throw dnsErrors.invalidContent("TXT", "not empty", text);
    return { content: quote(trimmed) };
  },
};

export const quote = (text: string): string => `"${text.replace(/(?<!\\)"/g, '\\"')}"`;

/** The strings inside `"…" "…"`, escapes kept; undefined when quotes or escapes are incomplete. */
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

/** The bytes of a TXT record's strings as they go on the wire, none longer than 255. */
export function textChunks(content: string): Uint8Array[] {
  return (quotedStrings(content) ?? []).flatMap((text) => {
    const bytes = unescape(text);
    const chunks: Uint8Array[] = [];
    for (let at = 0; at === 0 || at < bytes.length; at += chunkBytesMax)
      chunks.push(bytes.subarray(at, at + chunkBytesMax));
    return chunks;
  });
}

function unescape(text: string): Uint8Array {
  const parts: Buffer[] = [];
  for (const [, number, other, plain] of text.matchAll(/\\(\d{3})|\\([^])|([^\\]+)/g)) {
    parts.push(number === undefined ? Buffer.from(other ?? plain ?? "") : Buffer.from([Number(number)]));
  }
  return Buffer.concat(parts);
}
