import { types } from "../wire/constants.ts";
import { showName } from "../wire/name.ts";

const typeNames = new Map<number, string>(Object.entries(types).map(([name, number]) => [number, name]));

/** The name of a type, or TYPE and its number (RFC 3597, 5). */
export const typeName = (type: number): string => typeNames.get(type) ?? `TYPE${type}`;
export const shownName = (key: string): string => (key === "\0" ? "." : `${showName(key)}.`);

/** A name that may be compressed. `end` is the offset after it. */
export function readName(message: Buffer, start: number): { name: string; end: number } {
  let name = "";
  let end: number | undefined;
  for (let at = start; ;) {
    const length = message[at]!;
    if (length >= 0xc0) {
      end ??= at + 2;
      const target = message.readUInt16BE(at) & 0x3fff;
      if (target >= at) throw new Error("Expected a pointer to an earlier name");
      at = target;
      continue;
    }
    name += message.toString("latin1", at, at + 1 + length);
    at += 1 + length;
    if (length === 0) return { name, end: end ?? at };
  }
}
