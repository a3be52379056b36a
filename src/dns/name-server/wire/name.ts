/**
 * The key of a name in all lookups: its wire form in lower case, as a string with one character for each
 * byte, such as "\x03www\x07example\x00".
 */
export type NameKey = string;

export const rootName: NameKey = "\0";

/** The key of a name in its stored form: lower-case ASCII, no final dot; "." is the root. */
export function nameKey(name: string): NameKey {
  if (name === "." || name === "") return rootName;
  let key = "";
  for (const label of name.split(".")) key += String.fromCharCode(label.length) + label;
  return `${key}\0`;
}

/** The name with dots, for display. Bytes that are not allowed in host names are escaped (RFC 1035 §5.1). */
export function showName(key: NameKey): string {
  if (key === rootName) return ".";
  const labels: string[] = [];
  for (let rest = key; rest !== rootName; rest = parentOf(rest)) {
    labels.push(
      rest.slice(1, 1 + rest.charCodeAt(0)).replace(/[^a-zA-Z0-9_*-]/g, (character) => {
        const code = character.charCodeAt(0);
        return code > 32 && code < 127 ? `\\${character}` : `\\${String(code).padStart(3, "0")}`;
      }),
    );
  }
  return labels.join(".");
}

/** The name without its first label. Do not call it for the root. */
export const parentOf = (key: NameKey): NameKey => key.slice(1 + key.charCodeAt(0));

/** Whether a name is the ancestor or below it. */
export const isWithin = (key: NameKey, ancestor: NameKey): boolean => {
  let rest = key;
  while (rest.length > ancestor.length) rest = parentOf(rest);
  return rest === ancestor;
};

/**
 * The number of labels as RRSIG counts them, without the root and a wildcard's asterisk (RFC 4034 §3.1.3).
 */
export function labelCount(key: NameKey): number {
  let count = key.startsWith("\x01*") ? -1 : 0;
  for (let rest = key; rest !== rootName; rest = parentOf(rest)) count++;
  return count;
}

/** The uncompressed wire form of a name. */
export const nameBytes = (key: NameKey): Buffer => Buffer.from(key, "latin1");

/**
 * The end of the name at `at`, or -1 if it is malformed or compressed, which is not allowed in a question.
 */
export function endOfName(message: Buffer, at: number, end: number): number {
  let position = at;
  while (position < end) {
    const length = message[position]!;
    if (length > 63) return -1;
    position += 1 + length;
    if (length === 0) return position > end || position - at > 255 ? -1 : position;
  }
  return -1;
}
