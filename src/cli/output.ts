import { escapeControls } from "../platform/observability/control-characters.ts";

/* The output of commands. It may contain names, messages and values of customers, so control characters are escaped. */

/** Prints lines of a result. */
export function print(text: string): void {
  process.stdout.write(ended(escapeControls(text)));
}

/** Prints one line of a result. A line break in it is escaped, too. */
export function printLine(text: string): void {
  print(text.replaceAll("\n", "\\u000a"));
}

/** Prints lines of progress, warnings or errors. */
export function printNote(text: string): void {
  process.stderr.write(ended(escapeControls(text)));
}

const ended = (text: string): string => (text.endsWith("\n") ? text : `${text}\n`);
