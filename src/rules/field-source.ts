import type { IpValue, Value } from "./types.ts";

/**
 * Where an expression finds its fields: one property for each, under the field's own name, usually a getter that
 * works its value out when it is first asked. A property that is undefined, or not there, is a missing value.
 */
export interface FieldSource {
  readonly [field: string]: Value | undefined;
}

/** The contents of `$name` lists. An unknown list holds nothing. */
export interface ListSource {
  has: (list: string, value: string | number | bigint | IpValue) => boolean;
}

export const noLists: ListSource = { has: () => false };
