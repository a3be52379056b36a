/** The position of a syntax error in the text of a query. */
export interface Place {
  line: number;
  column: number;
  /** The line with its number, and carets below the error. */
  lines: string;
}

/**
 * Finds the position that a message such as `near "form": syntax error at offset 9` points to. The offset counts bytes
 * from the beginning of a statement that the message does not name: the first one that has the quoted text there.
 */
export function placeOf(message: string, text: string): Place | undefined {
  const offset = Number(/ at offset (\d+)/.exec(message)?.[1] ?? Number.NaN);
  const named = /near "((?:[^"]|"")+?)":|(?:column|table|function): (\S+)/.exec(message);
  if (Number.isNaN(offset)) return undefined;
  const word = (named?.[1] ?? named?.[2]?.split(".").at(-1) ?? "").toLowerCase();
  const places = [...text.matchAll(/(?:^|;)\s*/g)]
    .map(({ index, 0: { length } }) => index + length)
    .map((start) => start + charactersOf(text.slice(start), offset));
  const at = places.find((each) => text.slice(each).toLowerCase().startsWith(word)) ?? places[0]!;
  const before = text.slice(0, at);
  const from = before.lastIndexOf("\n") + 1;
  const end = text.indexOf("\n", at);
  const line = text.slice(from, end < 0 ? undefined : end);
  const number = before.split("\n").length;
  const head = `${number}: `;
  const carets = "^".repeat(Math.max(1, word.length));
  return {
    line: number,
    column: at - from + 1,
    lines: `${head}${line}\n${" ".repeat(head.length + at - from)}${carets}`,
  };
}

const charactersOf = (text: string, bytes: number): number =>
  new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, bytes)).length;
