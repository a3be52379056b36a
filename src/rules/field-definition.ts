import type { Type, Value } from "./types.ts";

export interface FieldDefinition {
  name: string;
  type: Type;
  /** The first phase that knows the field. */
  phase: "request" | "response";
  /** What a request has when nothing fills the field in; undefined means missing. */
  neutral: Value | undefined;
}

/** Groups of fields as the tables write them: a type, its names, and a neutral value. */
export type FieldGroup = readonly [type: Type, names: string, neutral?: Value];
