import type { FieldDefinition, FieldGroup } from "./field-definition.ts";
import type { Type, Value } from "../values/types.ts";
import { bodyFields, httpFields, jwtFields, rawFields } from "./fields-http.ts";
import { connectionFields, securityFields } from "./fields-cf.ts";
import { ipFields } from "./fields-ip.ts";
import { responseFields } from "./fields-response.ts";

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
