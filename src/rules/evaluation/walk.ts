import type {
  Argument,
  CallNode,
  CombiningNode,
  Expression,
  FieldNode,
  IndexNode,
  LogicalNode,
  Node,
} from "../syntax/ast.ts";
import { callOnce, combine, combineArrays, mapCall } from "../syntax/calls.ts";
import { satisfies } from "./compare.ts";
import { noLists, type FieldSource, type ListSource } from "../fields/field-source.ts";
import { spendSearch } from "../fields/work.ts";
import { navigate } from "./navigate.ts";
import type { Value } from "../values/types.ts";

/** Called with every node and its value, inner nodes first. */
export type Observer = (node: Node, value: Value | undefined) => void;

/** The reference evaluator: walks the tree, computes every part, and passes each to the observer. */
export class Walker {
  readonly #fields: FieldSource;
  readonly #lists: ListSource;
  readonly #observe: Observer | undefined;

  constructor(fields: FieldSource, lists: ListSource = noLists, observe?: Observer) {
    this.#fields = fields;
    this.#lists = lists;
    this.#observe = observe;
  }

  run(expression: Expression): boolean {
    return this.#logical(expression.root) === true;
  }

  #seen<T extends Value | undefined>(node: Node, value: T): T {
    this.#observe?.(node, value);
    return value;
  }

  /** A Bool, or an array of Bool if the node is mapped. */
  #logical(node: LogicalNode): boolean | readonly boolean[] {
    switch (node.kind) {
      case "comparison":
        return this.#seen(node, this.#comparison(node));
      case "not": {
        const value = this.#logical(node.operand);
        return this.#seen(node, typeof value === "boolean" ? !value : value.map((item) => !item));
      }
      case "quantifier": {
        const value = this.#argument(node.operand) as readonly boolean[] | undefined;
        // Both any() and all() are false for a missing array.
        const result =
          value !== undefined && (node.op === "any" ? value.includes(true) : !value.includes(false));
        return this.#seen(node, result);
      }
      case "combining":
        return this.#seen(node, this.#combining(node));
    }
  }

  #comparison(node: LogicalNode & { kind: "comparison" }): boolean | readonly boolean[] {
    const { left, operation, missingNotEqual } = node;
    const value = this.#index(left);
    const isSearch = operation.op === "contains" || operation.op === "matches" || operation.op === "wildcard";
    const holds = (item: Value): boolean => {
      if (isSearch) spendSearch(this.#fields, item as string);
      return satisfies(item, operation, this.#lists);
    };
    if (left.eachCount > 0) return value === undefined ? [] : (value as readonly Value[]).map(holds);
    // An array of Bool is its own value.
    if (node.type !== "Bool") return (value ?? []) as readonly boolean[];
    if (value === undefined) return operation.op === "ne" && missingNotEqual;
    return holds(value);
  }

  #combining(node: CombiningNode): boolean | readonly boolean[] {
    const values = node.items.map((item) => this.#logical(item));
    if (node.type !== "Bool") return combineArrays(node.op, values as (readonly boolean[])[]);
    return (values as boolean[]).reduce((left, right) => combine(node.op, left, right));
  }

  #argument(node: Argument): Value | undefined {
    if (node.kind === "literal") return this.#seen(node, node.value);
    return node.kind === "index" ? this.#index(node) : this.#logical(node);
  }

  /** The value, or for a mapped index the array of all values. */
  #index(node: IndexNode): Value | undefined {
    const base = node.base.kind === "field" ? this.#field(node.base) : this.#call(node.base);
    if (node.accesses.length === 0) return base;
    return this.#seen(node, navigate(base, node.accesses));
  }

  #field(node: FieldNode): Value | undefined {
    return this.#seen(node, this.#fields[node.field.name]);
  }

  #call(node: CallNode): Value | undefined {
    const args = node.args.map((arg) => this.#argument(arg));
    if (node.type === node.returns) return this.#seen(node, callOnce(node, args, this.#fields));
    return this.#seen(node, mapCall(node, args[0], args.slice(1), this.#fields));
  }
}
