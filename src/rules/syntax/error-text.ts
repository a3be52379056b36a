import type { Fault } from "../values/fault.ts";

export interface ExpressionError {
  /** The public text: `Filter parsing error (1:1):`, the line, and the carets with the reason. */
  message: string;
  /** The reason alone, as it appears after the carets. */
  reason: string;
  /** From 1. */
  line: number;
  /** From 1, in bytes of UTF-8, as in the public text. */
  column: number;
  /** The number of carets, at least 1 and at most to the end of the line. */
  length: number;
  /** The closest known name. */
  suggestion?: string;
}

/** Converts a fault to the public text. `text` is the whole original expression. */
export function describeFault(text: string, fault: Fault): ExpressionError {
  const lineStart = text.lastIndexOf("\n", fault.start - 1) + 1;
  const lineBreak = text.indexOf("\n", lineStart);
  const lineEnd = lineBreak === -1 ? text.length : lineBreak;
  const line = countBreaks(text, lineStart) + 1;
  const indent = Buffer.byteLength(text.slice(lineStart, fault.start));
  const end = Math.min(fault.end, Math.max(lineEnd, fault.start));
  const length = Math.max(1, Buffer.byteLength(text.slice(fault.start, end)));
  const reason = fault.message;
  const message =
    `Filter parsing error (${line}:${indent + 1}):\n${text.slice(lineStart, lineEnd)}\n` +
    `${" ".repeat(indent)}${"^".repeat(length)} ${reason}`;
  const error: ExpressionError = { message, reason, line, column: indent + 1, length };
  if (fault.suggestion !== undefined) error.suggestion = fault.suggestion;
  return error;
}

/** The API's error message for an invalid expression. */
export function invalidExpressionMessage(text: string, error: ExpressionError): string {
  return `'${text}' is not a valid value for expression because the expression is invalid: ${error.message}`;
}

function countBreaks(text: string, end: number): number {
  let count = 0;
  for (let i = text.indexOf("\n"); i !== -1 && i < end; i = text.indexOf("\n", i + 1)) count++;
  return count;
}
