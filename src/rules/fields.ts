import type { Type, Value } from "./types.ts";
import { bodyFields, httpFields, jwtFields, rawFields } from "./fields-http.ts";
import { connectionFields, securityFields } from "./fields-cf.ts";
import { ipFields } from "./fields-ip.ts";
import { responseFields } from "./fields-response.ts";

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

function define(phase: FieldDefinition["phase"], groups: readonly FieldGroup[]): FieldDefinition[] {
  return groups.flatMap(([type, names, neutral]) =>
    names.split(/\s+/).map((name) => ({ name, type, phase, neutral: neutral ?? neutralOf(type) })),
  );
}

const emptyMap: ReadonlyMap<string, Value> = new Map();

function neutralOf(type: Type): Value | undefined {
  if (type === "Bool") return false;
  if (type === "Bytes") return "";
  if (type === "Int") return 0;
  if (type === "Ip") return undefined;
  return type.startsWith("Array(") ? [] : emptyMap;
}

/** Every field of the language, by name. */
export const fields: ReadonlyMap<string, FieldDefinition> = new Map(
  [
    ...define("request", [
      ...httpFields,
      ...bodyFields,
      ...jwtFields,
      ...rawFields,
      ...ipFields,
      ...connectionFields,
      ...securityFields,
    ]),
    ...define("response", responseFields),
  ].map((field) => [field.name, field]),
);
