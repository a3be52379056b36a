/** The fault of an expression, in words for the caller; undefined when it can be executed. */
export function checkExpression(expression: string): string | undefined {
  if (expression.trim() === "true") return undefined;
  return `Expected the match-all expression "true" but received ${JSON.stringify(expression)}: other expressions are not supported yet`;
}
