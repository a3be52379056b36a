import type { FieldSource, RequestDescription } from "../rules/index.ts";

/** Whether a rule applies to a request, which is described only when the rule asks about it. */
export type RequestPredicate = (describe: () => RequestDescription) => boolean;

/** What the public API takes for "all incoming requests"; it is no expression of the language itself. */
const matchAll = "true";
// Loaded with the first rule that needs it: most starts are without one, and are the faster for it.
const language = () => import("../rules/index.ts");

/** The fault of an expression, in words for the caller; undefined when it can be executed. */
export async function checkExpression(text: string): Promise<string | undefined> {
  if (text.trim() === matchAll) return undefined;
  const { invalidExpressionMessage, parseExpression } = await language();
  const parsed = parseExpression(text, { lists: () => undefined });
  if (parsed.ok) return undefined;
  const hint = parsed.error.suggestion === undefined ? "" : `\nDid you mean ${parsed.error.suggestion}?`;
  return invalidExpressionMessage(text, parsed.error) + hint;
}

/** An expression that `checkExpression` has accepted, made ready for the hot path. */
export async function compileExpression(text: string): Promise<RequestPredicate> {
  if (text.trim() === matchAll) return () => true;
  const { compile, parseExpression, requestFields } = await language();
  const parsed = parseExpression(text);
  if (!parsed.ok) throw new Error(`a stored rule is not valid: ${parsed.error.message}`);
  const predicate = compile(parsed.expression);
  return (describe) => {
    const request = describe();
    let fields = fieldsOf.get(request);
    if (fields === undefined) fieldsOf.set(request, (fields = requestFields(request)));
    return predicate(fields);
  };
}

/** What one rule has worked out of a request, the next need not. */
const fieldsOf = new WeakMap<RequestDescription, FieldSource>();
