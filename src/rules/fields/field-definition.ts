import type { Type, Value } from "../values/types.ts";

export interface FieldDefinition {
  name: string;
  type: Type;
  /** The first phase in which the field is available. */
  phase: "request" | "response";
  /** The value without any source; undefined means missing. */
  neutral: Value | undefined;
}

/** A row of the field tables: a type, names separated by spaces, and a neutral value. */
export type FieldGroup = readonly [type: Type, names: string, neutral?: Value];
