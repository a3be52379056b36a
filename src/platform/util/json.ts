import { parseBounded, TooMuchJson } from "./bounded-json.ts";

/** Formats a list for messages. */
export const showList = (items: readonly string[]): string =>
  items.length === 0 ? "nothing" : items.join(", ");

/** Formats a value for messages: short and on one line. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/**
 * Parses JSON from a caller. On failure throws `fault(reason)`. The reason is our own text, because V8's
 * messages quote the input and change between versions.
 */
export function parseJson(text: string, fault: (why: string) => Error, valuesMax?: number): unknown {
  try {
    return parseBounded(text, valuesMax);
  } catch (error) {
    const { message } = error as SyntaxError;
    throw fault(error instanceof TooMuchJson ? message : whyNot(message));
  }
}

function whyNot(message: string): string {
  const found = /\(line (\d+) column (\d+)\)$/.exec(message);
  if (found !== null) return `it cannot be read at line ${found[1]}, column ${found[2]}`;
  const token = /^Unexpected token '(.)'/su.exec(message)?.[1];
  return token === undefined ? "it ends too early" : `it has ${show(token)} where a value was expected`;
}
