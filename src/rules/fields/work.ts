import type { FieldSource } from "./field-source.ts";
import type { Value } from "../values/types.ts";

/** Characters that functions and searches of all rules may read and write for one request, on the main thread. */
export const workMax = 64 * 1024 * 1024;

/** Searches in texts up to this length are not counted: the sizes of rules and rulesets limit them. */
export const uncountedMax = 1024;

/** The functions and searches of the rules have more to do for this request than `workMax`. */
export class TooMuchWork extends Error {
  constructor() {
    super(`the functions and searches of the rules take more than ${workMax} characters for this request`);
  }
}

const spent = Symbol("spent work");
type Source = FieldSource & { [spent]?: number };

/** Counts work for a request. Throws TooMuchWork before the function that exceeds the limit runs. */
export function spend(fields: Source, characters: number): void {
  const sum = (fields[spent] ?? 0) + characters;
  fields[spent] = sum;
  if (sum > workMax) throw new TooMuchWork();
}

/** The characters of texts and the items of lists. */
export function workOf(args: readonly (Value | undefined)[]): number {
  let work = 0;
  for (const arg of args) {
    if (typeof arg === "string" || Array.isArray(arg)) work += arg.length;
  }
  return work;
}

/** Counts a search in a text. */
export function spendSearch(fields: FieldSource, text: string): void {
  if (text.length > uncountedMax) spend(fields, text.length);
}
