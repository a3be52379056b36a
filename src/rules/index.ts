/** The filter expression language: check, compile, evaluate and explain. See `parseExpression` to begin with. */
export type { Expression } from "./ast.ts";
export { compile, type Predicate } from "./compile.ts";
export { invalidExpressionMessage, type ExpressionError } from "./error-text.ts";
export { evaluate } from "./evaluate.ts";
export type { FieldDefinition } from "./field-definition.ts";
export { noLists, type FieldSource, type ListSource } from "./field-source.ts";
export { fields } from "./fields.ts";
export { functions } from "./functions/functions.ts";
export { formatIp, parseIp } from "./ip.ts";
export { createLists, type ListContents } from "./lists.ts";
export { expressionBytesMax, parseExpression, type ParseOptions, type ParseResult } from "./parse.ts";
export type { Phase } from "./parser.ts";
export { requestFields, type RequestDescription } from "./request/request-fields.ts";
export { formatValue, trace, type Trace, type TraceNode } from "./trace.ts";
export { bytesOf, textOf, type Type, type Value } from "./types.ts";
