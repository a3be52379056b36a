/**
 * Splits a record's presentation form (RFC 1035 §5.1) into words at white space. Quoted words may contain
 * white space and lose their quotes, and escapes are resolved. Undefined if a quote is not closed or an
 * escape is not a printable character.
 */
export function splitWords(content: string): string[] | undefined {
  const words: string[] = [];
  const pattern = /\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^\s"\\]|\\.)+))(?=\s|$)\s*/suy;
  while (pattern.lastIndex < content.length) {
    const match = pattern.exec(content);
    if (match === null) return content.trim() === "" ? [] : undefined;
    const word = unescape(match[1] ?? match[2]!);
    if (word === undefined) return undefined;
    words.push(word);
  }
  return words;
}

function unescape(word: string): string | undefined {
  let isPrintable = true;
  const text = word.replace(/\\(?:(\d{3})|(.))/gsu, (_, number?: string, other?: string) => {
    if (other !== undefined && !/\d/.test(other)) return other;
    const code = Number(number ?? Number.NaN);
    isPrintable &&= code >= 0x20 && code < 0x7f;
    return isPrintable ? String.fromCodePoint(code) : "";
  });
  return isPrintable ? text : undefined;
}

export const quoteWord = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&")}"`;
