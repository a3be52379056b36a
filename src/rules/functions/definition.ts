import type { Type, Value } from "../values/types.ts";

export type ArgumentKind = "Literal" | "Field";

export interface FunctionParameter {
  /** The accepted types. `Array` alone accepts an array of any type. */
  types: readonly (Type | "Array")[];
  /** Whether the argument must be a literal, or must not be. */
  kind?: ArgumentKind;
  /** Returns the reason for rejecting a literal value, or undefined. */
  check?: (value: Value) => string | undefined;
}

/** An argument for the checks. Literals have a value. */
export interface ArgumentShape {
  type: Type;
  literal?: Value;
  /** The field's name, if the argument is a plain field. */
  field?: string;
}

export interface FunctionDefinition {
  name: string;
  parameters: readonly FunctionParameter[];
  /** The number of parameters at the end that are optional. */
  optional?: number;
  /** Further arguments are like the last parameter. */
  variadic?: boolean;
  /** Further arguments must have the type of the first. */
  sameTypes?: boolean;
  returns: Type | ((args: readonly ArgumentShape[]) => Type);
  /** All functions with the same value here may be used only once in an expression. */
  onceAs?: string;
  /** Returns a reason for rejecting an argument that types cannot express, or undefined. */
  checkArgument?: (index: number, argument: ArgumentShape) => string | undefined;
  /** Prepares constant arguments once. Throws ArgumentFault with the index of an invalid argument. */
  prepare?: (args: readonly ArgumentShape[]) => unknown;
  /** Whether `call` accepts missing values. Otherwise a missing argument makes the result missing. */
  acceptsMissing?: boolean;
  /** Characters to read or write, besides those of the arguments. */
  moreWork?: (args: readonly (Value | undefined)[]) => number;
  /** Returns the result, or undefined for a missing value. Must not modify its arguments. */
  call: (args: readonly (Value | undefined)[], prepared: unknown) => Value | undefined;
}

/** Thrown by `prepare` for an invalid literal argument. */
export class ArgumentFault extends Error {
  readonly index: number;

  constructor(index: number, reason: string) {
    super(reason);
    this.index = index;
  }
}
