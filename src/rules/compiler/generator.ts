import type {
  FieldAccess,
  Argument,
  CallNode,
  CombiningNode,
  ComparisonNode,
  IndexNode,
  LogicalNode,
  QuantifierNode,
} from "../syntax/ast.ts";
import { callOnce, combineArrays, mapCall } from "../syntax/calls.ts";
import type { FieldSource } from "../fields/field-source.ts";
import { navigate } from "../evaluation/navigate.ts";
import { elementOf, isMap, type Type } from "../values/types.ts";
import { lowerAscii, upperAscii } from "../values/wildcard.ts";
import { spend } from "../fields/work.ts";
import { condition } from "./conditions.ts";
import type { Writer } from "./writer.ts";

/** Generates JavaScript for an expression. In the code, `f` is the field source and `lists` are the lists. */
export class Generator {
  readonly #writer: Writer;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  /** Code for a Bool that is never missing. */
  bool(node: LogicalNode): string {
    switch (node.kind) {
      case "comparison":
        return this.#comparison(node);
      case "not":
        return `!${this.bool(node.operand)}`;
      case "combining":
        return this.#combining(node);
      case "quantifier":
        return this.#quantifier(node);
    }
  }

  #combining(node: CombiningNode): string {
    const items = node.items.map((item) => this.bool(item));
    return `(${items.join(node.op === "and" ? "&&" : node.op === "or" ? "||" : "!==")})`;
  }

  #comparison({ left, operation, missingNotEqual }: ComparisonNode): string {
    const direct = operation.op === "true" ? this.#edgeTest(left) : undefined;
    if (direct !== undefined) return direct;
    const value = this.#value(left);
    if (operation.op === "ne" && missingNotEqual)
      return `(${value}!==${this.#writer.constant(operation.value)})`;
    return condition(this.#writer, operation, value, false);
  }

  /** Direct code for `starts_with` and `ends_with` with a literal, which are frequent. */
  #edgeTest({ base, accesses }: IndexNode): string | undefined {
    if (base.kind !== "call" || accesses.length > 0 || base.type !== "Bool") return undefined;
    const method = edgeMethods[base.definition.name];
    const [text, edge] = base.args;
    if (method === undefined || edge?.kind !== "literal") return undefined;
    const name = this.#writer.temporary();
    const test = edgeCode(this.#writer, name, method, edge.value as string);
    return `((${name}=${this.#argument(text!)})!==undefined&&${test})`;
  }

  #quantifier({ op, operand }: QuantifierNode): string {
    const writer = this.#writer;
    const mapped = mappedComparison(operand);
    if (mapped === undefined) {
      const name = writer.temporary();
      const test = op === "any" ? `${name}.includes(true)` : `!${name}.includes(false)`;
      return `((${name}=${this.#argument(operand)})!==undefined&&${test})`;
    }
    // The loop returns at the first value that decides the result.
    const { comparison, negated } = mapped;
    const decides = (op === "any") !== negated;
    const name = writer.function(() => {
      const loop = this.#each(comparison.left, (value) => {
        const test = condition(writer, comparison.operation, value, true);
        return `if(${decides ? "" : "!"}(${test}))return ${op === "any"};`;
      });
      return `${loop}return ${op !== "any"};`;
    });
    return `${name}(f)`;
  }

  /** Statements that run `body` for every value of a mapped index. */
  #each(node: IndexNode, body: (value: string) => string): string {
    const { base, accesses } = node;
    const [first, ...rest] = accesses;
    if (base.kind === "call" && base.type !== base.returns && first?.kind === "each") {
      // Iterates over the results of a mapped call directly, without an intermediate array.
      const [mapped, ...others] = base.args as [IndexNode, ...Argument[]];
      const fixed = others.map((arg) => ({ name: this.#writer.name("a"), code: this.#argument(arg) }));
      const declared = fixed.map(({ name, code }) => `const ${name}=${code};`).join("");
      const loop = this.#each(mapped, (value) => {
        const result = this.#writer.name("r");
        const code = this.#call(base, [value, ...fixed.map(({ name }) => name)], true);
        return `const ${result}=${code};if(${result}!==undefined){${this.#walk(result, rest, base.returns, body)}}`;
      });
      return declared + loop;
    }
    const value = this.#writer.name("v");
    const code = this.#base(base);
    return `const ${value}=${code};if(${value}!==undefined){${this.#walk(value, accesses, base.type, body)}}`;
  }

  #walk(
    value: string,
    accesses: readonly FieldAccess[],
    type: Type,
    body: (value: string) => string,
  ): string {
    const [access, ...rest] = accesses;
    if (access === undefined) return body(value);
    const inner = elementOf(type)!;
    const item = this.#writer.name("v");
    if (access.kind !== "each") {
      const code = `const ${item}=${value}${this.#access(access)};`;
      return `${code}if(${item}!==undefined){${this.#walk(item, rest, inner, body)}}`;
    }
    const block = this.#walk(item, rest, inner, body);
    if (isMap(type)) return `for(const ${item} of ${value}.values()){${block}}`;
    const index = this.#writer.name("i");
    return `for(let ${index}=0;${index}<${value}.length;${index}++){const ${item}=${value}[${index}];${block}}`;
  }

  /** Code for the value that accesses begin with. */
  #base(base: IndexNode["base"]): string {
    if (base.kind === "field") return this.#field(base.field.name);
    const args = base.args.map((arg) => this.#argument(arg));
    return this.#call(base, args);
  }

  /** Code for a value that may be missing. For a mapped index it is the array of its values. */
  #value({ base, accesses, eachCount }: IndexNode): string {
    const code = this.#base(base);
    if (eachCount > 0)
      return `${this.#writer.constant(navigate)}(${code},${this.#writer.constant(accesses)})`;
    return accesses.reduce((inner, access) => `${inner}?.${this.#access(access)}`.replace("?..", "?."), code);
  }

  #access(access: FieldAccess): string {
    if (access.kind === "key") return `.get(${this.#writer.constant(access.key)})`;
    return access.kind === "at" ? `[${access.index}]` : "";
  }

  #field(name: string): string {
    // The name comes from the field table, not from the expression's text.
    return `f[${JSON.stringify(name)}]`;
  }

  #call(node: CallNode, args: readonly string[], single = false): string {
    const writer = this.#writer;
    const [first, second] = args;
    if (node.type !== node.returns && !single) {
      return `${writer.constant(mapCall)}(${writer.constant(node)},${first},[${args.slice(1).join(",")}],f)`;
    }
    const known = unaryFunctions[node.definition.name];
    if (known !== undefined) {
      if (single) return `${writer.constant(known)}(${first},f)`;
      const name = writer.temporary();
      return `((${name}=${first})===undefined?undefined:${writer.constant(known)}(${name},f))`;
    }
    if (node.definition.name === "len") return `${first}?.length`;
    const method = edgeMethods[node.definition.name];
    if (method !== undefined && single && node.args[1]?.kind === "literal")
      return `${first}.${method}(${second})`;
    return `${writer.constant(callOnce)}(${writer.constant(node)},[${args.join(",")}],f)`;
  }

  /** Code for an argument, which is an array if it is mapped. */
  #argument(node: Argument): string {
    if (node.kind === "literal") return this.#writer.constant(node.value);
    if (node.kind === "index") return this.#value(node);
    return node.type === "Bool" ? this.bool(node) : this.#array(node);
  }

  /** Code for an array of Bool that is never missing. */
  #array(node: LogicalNode): string {
    const writer = this.#writer;
    switch (node.kind) {
      case "comparison": {
        const values = `(${this.#value(node.left)}??[])`;
        if (node.left.eachCount === 0) return values;
        const item = writer.name("v");
        return `${values}.map((${item})=>${condition(writer, node.operation, item, true)})`;
      }
      case "not":
        return `${this.#array(node.operand)}.map((v)=>!v)`;
      case "combining": {
        const items = node.items.map((item) => this.#array(item));
        return `${writer.constant(combineArrays)}(${writer.constant(node.op)},[${items.join(",")}])`;
      }
      case "quantifier":
        return `[${this.bool(node)}]`;
    }
  }
}

/**
 * Short prefixes and suffixes are compared byte by byte, because V8 inlines the methods only for literals,
 * which the generated code never contains.
 */
function edgeCode(writer: Writer, name: string, method: string, edge: string): string {
  if (edge.length === 0 || edge.length > inlineBytesMax) return `${name}.${method}(${writer.constant(edge)})`;
  const offset = (i: number): string =>
    method === "startsWith" ? String(i) : `${name}.length-${edge.length - i}`;
  const bytes = Array.from(edge, (byte, i) => `${name}.charCodeAt(${offset(i)})===${byte.charCodeAt(0)}`);
  return `(${name}.length>=${edge.length}&&${bytes.join("&&")})`;
}

const inlineBytesMax = 8;
const edgeMethods: Readonly<Record<string, string>> = { starts_with: "startsWith", ends_with: "endsWith" };
const counted =
  (call: (bytes: string) => string) =>
  (bytes: string, fields: FieldSource): string => {
    spend(fields, bytes.length);
    return call(bytes);
  };
const unaryFunctions: Readonly<Record<string, ReturnType<typeof counted>>> = {
  lower: counted(lowerAscii),
  upper: counted(upperAscii),
};

/** A comparison of mapped values, under any number of `not`. */
function mappedComparison(
  node: LogicalNode | IndexNode,
): { comparison: ComparisonNode; negated: boolean } | undefined {
  if (node.kind === "not") {
    const inner = mappedComparison(node.operand);
    return inner === undefined ? undefined : { ...inner, negated: !inner.negated };
  }
  return node.kind === "comparison" && node.left.eachCount > 0
    ? { comparison: node, negated: false }
    : undefined;
}
