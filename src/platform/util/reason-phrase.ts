import { STATUS_CODES } from "node:http";

/**
 * The reason phrase of a status line: the given one, else the standard one of the status, else "". workerd's
 * `node:http` writes "unknown" where a script sets none. Text that is not valid in a status line is replaced
 * too.
 */
export const reasonPhrase = (status: number, text = ""): string =>
  text !== "unknown" && /^[\t\x20-\x7e]+$/.test(text) ? text : (STATUS_CODES[status] ?? "");
