import type { Flags, PatternReader } from "./reader.ts";

const flagNames: Readonly<Record<string, keyof Flags>> = {
  i: "ignoreCase",
  m: "multiLine",
  s: "dotAll",
  U: "swapGreed",
  u: "unicode",
  x: "verbose",
};

/**
 * Reads the flags after `(?` and sets them. `(?i)` applies to the rest of its group and returns "flags".
 * `(?i:` opens a group and returns "group"; the caller restores the flags at its end.
 */
export function readGroupFlags(reader: PatternReader, start: number): "flags" | "group" {
  const flags: Flags = { ...reader.flags };
  const seen = new Set<string>();
  let value = true;
  let last = "";
  for (;;) {
    const char = reader.here;
    if (char === "") throw reader.fault("unclosed group", start, start + 1);
    reader.pos++;
    if (char === ":" || char === ")") {
      if (last === "-") throw reader.fault("dangling flag negation operator", reader.pos - 2, reader.pos - 1);
      if (char === ")" && last === "") {
        throw reader.fault("repetition operator missing expression", start + 1, start + 2);
      }
      reader.flags = flags;
      return char === ":" ? "group" : "flags";
    }
    last = char;
    if (seen.has(char))
      throw reader.fault(char === "-" ? "flag negation operator repeated" : "duplicate flag", reader.pos - 1);
    seen.add(char);
    const name = flagNames[char];
    if (char === "-") value = false;
    else if (char === "R") throw reader.fault("CRLF mode is not supported", reader.pos - 1);
    else if (name === undefined) throw reader.fault("unrecognized flag", reader.pos - 1);
    else flags[name] = value;
  }
}
