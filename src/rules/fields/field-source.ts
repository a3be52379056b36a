import type { IpValue, Value } from "../values/types.ts";

/**
 * The fields of a request, with a property for each field name, usually a lazy getter. An undefined or absent
 * property is a missing value.
 */
export interface FieldSource {
  readonly [field: string]: Value | undefined;
}

/** The contents of `$name` lists. An unknown list is empty. */
export interface ListSource {
  has: (list: string, value: string | number | bigint | IpValue) => boolean;
}

export const noLists: ListSource = { has: () => false };
