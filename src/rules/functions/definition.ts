import type { Type, Value } from "../types.ts";

export type ArgumentKind = "Literal" | "Field";

export interface Parameter {
  /** The types it takes; `Array` alone takes an array of anything. */
  types: readonly (Type | "Array")[];
  /** Whether it must be written out, or must not be. */
  kind?: ArgumentKind;
  /** Refuses a literal value: gives the reason. */
  check?: (value: Value) => string | undefined;
}

/** An argument as the checks see it: literals have a value. */
export interface ArgumentShape {
  type: Type;
  literal?: Value;
  /** The name of the field, when the argument is a plain one. */
  field?: string;
}

export interface FunctionDefinition {
  name: string;
  parameters: readonly Parameter[];
  /** How many of the parameters may be left out, from the end. */
  optional?: number;
  /** Further arguments are like the last parameter. */
  variadic?: boolean;
  /** Further arguments must have the type of the first. */
  sameTypes?: boolean;
  returns: Type | ((args: readonly ArgumentShape[]) => Type);
  /** Functions of one family may appear once in an expression, together. */
  onceAs?: string;
  /** Refuses an argument for a reason that types do not show. */
  checkArgument?: (index: number, argument: ArgumentShape) => string | undefined;
  /** Makes constant arguments ready, once. An error it throws is about the argument whose number it is given with. */
  prepare?: (args: readonly ArgumentShape[]) => unknown;
  /** Called with missing values too; else any missing argument makes the result missing. */
  acceptsMissing?: boolean;
  /** The result, or undefined for none. Must not change its arguments. */
  call: (args: readonly (Value | undefined)[], prepared: unknown) => Value | undefined;
}

/** A literal argument that cannot be used, from `prepare`. */
export class ArgumentFault extends Error {
  readonly index: number;

  constructor(index: number, reason: string) {
    super(reason);
    this.index = index;
  }
}
