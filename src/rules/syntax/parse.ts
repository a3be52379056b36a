import type { Expression } from "./ast.ts";
import type { ListLookup } from "./comparison.ts";
import { Cursor } from "./cursor.ts";
import { Fault } from "../values/fault.ts";
import { describeFault, type ExpressionError } from "./error-text.ts";
import { Parser, type ExpressionPhase } from "./parser.ts";

/** Length of an expression in UTF-8 bytes. */
export const expressionBytesMax = 4096;

export interface ParseOptions {
  /** `request` rejects fields of the response. Default `request`. */
  phase?: ExpressionPhase;
  /**
   * Looks existing lists up by name without `$`. If absent, every name is accepted, and unknown lists are
   * empty.
   */
  lists?: ListLookup;
  /** The result of `ne` if its left side is missing. Default false. */
  missingNotEqual?: boolean;
}

export type ParseResult = { ok: true; expression: Expression } | { ok: false; error: ExpressionError };

/** Parses and checks an expression. Never throws. */
export function parseExpression(text: string, options: ParseOptions = {}): ParseResult {
  try {
    const bytes = text.length > expressionBytesMax ? text.length : Buffer.byteLength(text);
    if (bytes > expressionBytesMax) {
      throw new Fault(
        `expected at most ${expressionBytesMax} bytes but received ${Buffer.byteLength(text)}`,
        0,
        0,
      );
    }
    // Any white space, including tabs, may surround the expression, but not appear inside it.
    const cursor = new Cursor(
      text.trimEnd(),
      Math.min(text.length - text.trimStart().length, text.trimEnd().length),
    );
    const { phase = "request", lists, missingNotEqual = false } = options;
    const root = new Parser(cursor, { phase, lists, missingNotEqual }).parse();
    return { ok: true, expression: { text, root } };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return {
      ok: false,
      error: describeFault(text.length > expressionBytesMax ? text.slice(0, 80) : text, error),
    };
  }
}
