/** The bytes of a text in JSON, in UTF-8 and without its quotes. A control character takes six. */
export function jsonBytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x20 && unit < 0x80) bytes += unit === quote || unit === backslash ? 1 : 0;
    else if (unit < 0x20) bytes += shortEscapes.has(unit) ? 1 : 5;
    else if (unit < 0x800) bytes += 1;
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 2;
    else if (isPair(unit, text.charCodeAt(i + 1))) {
      bytes += 2; // two units, four bytes
      i++;
    } else bytes += 5; // a lone surrogate is escaped
  }
  return bytes;
}

const quote = 0x22;
const backslash = 0x5c;
/** Backspace, tab, line feed, form feed and carriage return have escapes of two characters. */
const shortEscapes: ReadonlySet<number> = new Set([8, 9, 10, 12, 13]);

const isPair = (first: number, second: number): boolean =>
  first < 0xdc00 && second >= 0xdc00 && second <= 0xdfff;
