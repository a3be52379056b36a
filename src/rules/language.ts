/** The filter expression language: parse, compile, evaluate and trace. Start with `parseExpression`. */
export type { Expression } from "./syntax/ast.ts";
export { compile, type Predicate } from "./compiler/compile.ts";
export { invalidExpressionMessage, type ExpressionError } from "./syntax/error-text.ts";
export { evaluate } from "./evaluation/evaluate.ts";
export type { FieldDefinition } from "./fields/field-definition.ts";
export { noLists, type FieldSource, type ListSource } from "./fields/field-source.ts";
export { fieldsOf } from "./syntax/fields-of.ts";
export { fields } from "./fields/fields.ts";
export { functions } from "./functions/functions.ts";
export { formatIp, parseIp } from "./values/ip.ts";
export { createLists, type ListContents } from "./evaluation/lists.ts";
export { expressionBytesMax, parseExpression, type ParseOptions, type ParseResult } from "./syntax/parse.ts";
export type { ExpressionPhase } from "./syntax/parser.ts";
export { requestFields, type RequestDescription } from "./request/request-fields.ts";
export { formatValue, trace, type Trace, type TraceNode } from "./evaluation/trace.ts";
export { TooMuchWork, workMax } from "./fields/work.ts";
export { encodeUtf8, decodeUtf8, type Type, type Value } from "./values/types.ts";
