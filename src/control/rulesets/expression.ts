import type { FieldSource, RequestDescription } from "../../rules/language.ts";

/** Returns whether a rule applies to a request. Calls `describe` only if the rule needs the request. */
export interface RequestPredicate {
  (describe: () => RequestDescription): boolean;
  /** Whether the rule needs the body, which is read only then. */
  readonly readsBody?: boolean;
}

/** The public API accepts this as "all incoming requests". It is not an expression of the language itself. */
const matchAll = "true";
// Loaded with the first rule that needs it, because most installations have no rules and start faster without
// it.
const language = () => import("../../rules/language.ts");

/** The error message for an invalid expression; undefined if the expression is valid. */
export async function checkExpression(text: string): Promise<string | undefined> {
  if (text.trim() === matchAll) return undefined;
  const { invalidExpressionMessage, parseExpression } = await language();
  const parsed = parseExpression(text, { lists: () => undefined });
  if (parsed.ok) return undefined;
  const hint = parsed.error.suggestion === undefined ? "" : `\nDid you mean ${parsed.error.suggestion}?`;
  return invalidExpressionMessage(text, parsed.error) + hint;
}

/** Compiles an expression that `checkExpression` has accepted. */
export async function compileExpression(text: string): Promise<RequestPredicate> {
  if (text.trim() === matchAll) return () => true;
  const { compile, fieldsOf, parseExpression, requestFields } = await language();
  const parsed = parseExpression(text);
  if (!parsed.ok) throw new Error(`a stored rule is not valid: ${parsed.error.message}`);
  const predicate = compile(parsed.expression);
  const matches = (describe: () => RequestDescription): boolean => {
    const request = describe();
    let fields = known.get(request);
    if (fields === undefined) known.set(request, (fields = requestFields(request)));
    return predicate(fields);
  };
  const readsBody = [...fieldsOf(parsed.expression)].some((name) => bodyField.test(name));
  return Object.assign(matches, { readsBody });
}

/** Fields that need the body. The MIME type comes from a header instead. */
const bodyField = /^http\.request\.body\.(?!mime$)/;

/** Fields already computed for a request, shared by its rules. */
const known = new WeakMap<RequestDescription, FieldSource>();
