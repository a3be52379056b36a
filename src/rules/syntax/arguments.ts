import type { Argument, CallNode } from "./ast.ts";
import { Fault } from "../values/fault.ts";
import {
  ArgumentFault,
  type ArgumentShape,
  type FunctionDefinition,
  type FunctionParameter,
} from "../functions/definition.ts";
import { displayType, isArray, type Type } from "../values/types.ts";

/** Checks the arguments of one call, in their order. */
export class ArgumentChecker {
  readonly #definition: FunctionDefinition;
  readonly #shapes: ArgumentShape[] = [];
  readonly #args: Argument[] = [];

  constructor(definition: FunctionDefinition) {
    this.#definition = definition;
  }

  get count(): number {
    return this.#args.length;
  }

  /** Checks and adds the next argument. Throws Fault. */
  add(argument: Argument, textEnd: number): void {
    const { parameters, variadic, sameTypes, checkArgument } = this.#definition;
    const index = this.#args.length;
    if (index > 0 && argument.kind === "index" && argument.eachCount > 0) {
      throw new Fault("invalid use of map each access operator", argument.start, argument.end);
    }
    if (index >= parameters.length && variadic !== true) {
      throw new Fault("invalid number of arguments", argument.start, textEnd);
    }
    const shape = shapeOf(argument);
    const parameter = parameters[Math.min(index, parameters.length - 1)]!;
    const fault = (what: string, reason: string): Fault =>
      new Fault(`invalid ${what} of argument #${index}: ${reason}`, argument.start, argument.end);
    checkKind(parameter, shape, fault);
    checkType(sameTypes === true && index > 0 ? [this.#shapes[0]!.type] : parameter.types, shape.type, fault);
    const reason =
      (shape.literal === undefined ? undefined : parameter.check?.(shape.literal)) ??
      checkArgument?.(index, shape);
    if (reason !== undefined) throw fault("value", `invalid argument: ${JSON.stringify(reason)}`);
    this.#shapes.push(shape);
    this.#args.push(argument);
  }

  /** Returns the complete call. `pos` is the position of the closing bracket. */
  finish(pos: number, textEnd: number): Pick<CallNode, "args" | "returns" | "type" | "prepared"> {
    const { parameters, optional, returns, prepare } = this.#definition;
    if (this.#args.length < parameters.length - (optional ?? 0)) {
      throw new Fault("invalid number of arguments", pos, textEnd);
    }
    const type = typeof returns === "function" ? returns(this.#shapes) : returns;
    const first = this.#args[0];
    const isMapped = first?.kind === "index" && first.eachCount > 0;
    return {
      args: this.#args,
      returns: type,
      type: isMapped ? `Array(${type})` : type,
      prepared: this.#prepare(prepare),
    };
  }

  #prepare(prepare: FunctionDefinition["prepare"]): unknown {
    try {
      return prepare?.(this.#shapes);
    } catch (error) {
      if (!(error instanceof ArgumentFault)) throw error;
      const argument = this.#args[error.index]!;
      const reason = `invalid value of argument #${error.index}: invalid argument: ${JSON.stringify(error.message)}`;
      throw new Fault(reason, argument.start, argument.end);
    }
  }
}

type MakeFault = (what: string, reason: string) => Fault;

function checkKind(parameter: FunctionParameter, shape: ArgumentShape, fault: MakeFault): void {
  const actual = shape.literal === undefined ? "Field" : "Literal";
  if (parameter.kind !== undefined && parameter.kind !== actual) {
    throw fault("kind", `expected argument of kind ${parameter.kind}, but got ${actual}`);
  }
}

function checkType(types: readonly (Type | "Array")[], actual: Type, fault: MakeFault): void {
  if (types.some((type) => (type === "Array" ? isArray(actual) : type === actual))) return;
  const names = types.map((type) => (type === "Array" ? "Array<_>" : displayType(type))).toSorted();
  const expected = names.length <= 2 ? names.join(" or ") : `{${names.join(", ")}}`;
  throw fault("type", `expected value of type ${expected}, but got ${displayType(actual)}`);
}

function shapeOf(argument: Argument): ArgumentShape {
  if (argument.kind === "literal") return { type: argument.type, literal: argument.value };
  const shape: ArgumentShape = { type: argument.type };
  if (argument.kind === "index" && argument.base.kind === "field" && argument.accesses.length === 0) {
    shape.field = argument.base.field.name;
  }
  return shape;
}
