import { ArgumentChecker } from "./arguments.ts";
import type {
  FieldAccess,
  Argument,
  CallNode,
  CombiningNode,
  ComparisonNode,
  FieldNode,
  IndexNode,
  LogicalNode,
} from "./ast.ts";
import { atOperator, readOperation, type ListLookup } from "./comparison.ts";
import { type Cursor } from "./cursor.ts";
import { Fault } from "../values/fault.ts";
import { fields } from "../fields/fields.ts";
import type { FunctionDefinition } from "../functions/definition.ts";
import { functions } from "../functions/functions.ts";
import { readIp } from "./ip-literal.ts";
import { readBytes, readInt } from "./literals.ts";
import { nearestName } from "./suggest.ts";
import { displayType, elementOf, isArray, isMap, type Type } from "../values/types.ts";

export type ExpressionPhase = "request" | "response";

export interface ParserSettings {
  phase: ExpressionPhase;
  lists?: ListLookup | undefined;
  missingNotEqual: boolean;
}

type CombiningName = CombiningNode["op"];
const combiningOperators: readonly (readonly [spelling: string, name: CombiningName, precedence: number])[] =
  [
    ["or", "or", 1],
    ["||", "or", 1],
    ["xor", "xor", 2],
    ["^^", "xor", 2],
    ["and", "and", 3],
    ["&&", "and", 3],
  ];

const quantifierStart = /(?:any|all)[ \r\n]*\(/y;
const isNameCharacter = (code: number): boolean => /[A-Za-z0-9_]/.test(String.fromCharCode(code));

/**
 * Parses and checks in one pass, like the public engine, so that the first error from the left is reported.
 */
export class Parser {
  readonly #cursor: Cursor;
  readonly #settings: ParserSettings;
  readonly #once = new Set<string>();

  constructor(cursor: Cursor, settings: ParserSettings) {
    this.#cursor = cursor;
    this.#settings = settings;
  }

  /** Parses the whole text as an expression of type Bool. */
  parse(): LogicalNode {
    const cursor = this.#cursor;
    const root = this.#logical();
    if (root.type !== "Bool") {
      const reason = `expected value of type Bool, but got ${displayType(root.type)}`;
      throw new Fault(reason, root.start, root.end);
    }
    if (!cursor.ended) throw cursor.faultHere("unrecognised input");
    return root;
  }

  #logical(): LogicalNode {
    return this.#combine(this.#simple(), 1);
  }

  /** Precedence climbing: consumes operators of at least `precedence`. */
  #combine(first: LogicalNode, precedence: number): LogicalNode {
    const cursor = this.#cursor;
    let left = first;
    for (;;) {
      const operator = this.#peekCombining();
      if (operator === undefined || operator.precedence < precedence) return left;
      cursor.pos = operator.end;
      cursor.skipSpace();
      const right = this.#combine(this.#simple(), operator.precedence + 1);
      if ((left.type === "Bool") !== (right.type === "Bool")) {
        // The public message points after the next operator, if there is one.
        const next = this.#peekCombining();
        if (next !== undefined) {
          cursor.pos = next.end;
          cursor.skipSpace();
        }
        const expected = displayType(left.type);
        throw cursor.faultHere(`expected value of type ${expected}, but got ${displayType(right.type)}`);
      }
      left = combined(operator.name, left, right, first.start);
    }
  }

  #peekCombining(): { name: CombiningName; precedence: number; end: number } | undefined {
    const at = this.#cursor.afterSpace();
    for (const [spelling, name, precedence] of combiningOperators) {
      if (this.#cursor.text.startsWith(spelling, at)) return { name, precedence, end: at + spelling.length };
    }
    return undefined;
  }

  #simple(): LogicalNode {
    const cursor = this.#cursor;
    const start = cursor.pos;
    if (cursor.at("(")) {
      return cursor.nested(start, () => {
        cursor.expect("(");
        cursor.skipSpace();
        const inner = this.#logical();
        cursor.skipSpace();
        cursor.expect(")");
        return { ...inner, start, end: cursor.pos };
      });
    }
    if (cursor.at("not") || cursor.at("!")) {
      return cursor.nested(start, () => {
        if (!cursor.take("not")) cursor.expect("!");
        cursor.skipSpace();
        const operand = this.#simple();
        return { kind: "not", operand, type: operand.type, start, end: cursor.pos };
      });
    }
    return this.#quantifierAt(start) ? this.#quantifier() : this.#comparison(this.#index());
  }

  #quantifierAt(pos: number): boolean {
    quantifierStart.lastIndex = pos;
    return quantifierStart.test(this.#cursor.text);
  }

  #quantifier(): LogicalNode {
    const cursor = this.#cursor;
    const start = cursor.pos;
    const op = cursor.take("any") ? "any" : "all";
    if (op === "all") cursor.expect("all");
    cursor.skipSpace();
    return cursor.nested(cursor.pos, () => {
      cursor.expect("(");
      cursor.skipSpace();
      const operand = this.#argument();
      if (operand.kind === "literal" || operand.type !== "Array(Bool)" || isMapped(operand)) {
        const reason = `expected value of type Array<Bool>, but got ${displayType(operand.type)}`;
        throw new Fault(reason, operand.start, cursor.pos);
      }
      cursor.skipSpace();
      cursor.expect(")");
      return { kind: "quantifier", op, operand, type: "Bool", start, end: cursor.pos };
    });
  }

  #comparison(left: IndexNode): ComparisonNode {
    const cursor = this.#cursor;
    const { missingNotEqual } = this.#settings;
    const mapped = left.eachCount > 0;
    const node = { kind: "comparison" as const, left, missingNotEqual, start: left.start };
    if (left.type === "Bool" || elementOf(left.type) === "Bool") {
      if (left.type !== "Bool" && mapped) {
        throw new Fault("cannot perform this operation on type Array(Array(Bool))", cursor.pos, cursor.pos);
      }
      return { ...node, operation: { op: "true" }, type: mapped ? "Array(Bool)" : left.type, end: left.end };
    }
    const operation = readOperation(cursor, left.type, this.#settings.lists);
    return { ...node, operation, type: mapped ? "Array(Bool)" : "Bool", end: cursor.pos };
  }

  #index(): IndexNode {
    const cursor = this.#cursor;
    const start = cursor.pos;
    const base = this.#identifier();
    const accesses: FieldAccess[] = [];
    let type: Type = base.type;
    while (cursor.at("[")) {
      const open = cursor.pos;
      cursor.expect("[");
      cursor.skipSpace();
      const access = this.#access();
      cursor.skipSpace();
      cursor.expect("]");
      const isIndexable =
        access.kind === "at"
          ? isArray(type)
          : access.kind === "key"
            ? isMap(type)
            : elementOf(type) !== undefined;
      if (!isIndexable) {
        throw new Fault(`cannot access index ${nameOf(access)} for type ${type}`, open, cursor.pos);
      }
      type = elementOf(type)!;
      accesses.push(access);
    }
    const eachCount = accesses.filter((access) => access.kind === "each").length;
    return { kind: "index", base, accesses, eachCount, type, start, end: cursor.pos };
  }

  #access(): FieldAccess {
    const cursor = this.#cursor;
    const start = cursor.pos;
    if (cursor.take("*")) return { kind: "each" };
    const fault = (wanted: string): Fault =>
      new Fault(`expected literal ${JSON.stringify(wanted)}`, start, cursor.text.length);
    if (cursor.at('"')) {
      const key = readBytes(cursor);
      const text = Buffer.from(key, "latin1");
      if (text.toString("utf8").includes("\ufffd") && !key.includes("\xef\xbf\xbd"))
        throw fault("expected utf8 string");
      return { kind: "key", key };
    }
    let index: number | bigint;
    try {
      index = readInt(cursor);
    } catch {
      throw fault("expected quoted utf8 string or positive integer");
    }
    if (index < 0 || index > 0xffff_ffff) throw fault("expected positive integer as index");
    return { kind: "at", index: Number(index) };
  }

  #identifier(): FieldNode | CallNode {
    const cursor = this.#cursor;
    const start = cursor.pos;
    do cursor.takeWhile("identifier character", isNameCharacter);
    while (cursor.take("."));
    const end = cursor.pos;
    const name = cursor.text.slice(start, end);
    const field = fields.get(name);
    if (field !== undefined) {
      if (field.phase === "response" && this.#settings.phase === "request") {
        throw new Fault(`field ${name} is not available in the request phase`, start, end);
      }
      return { kind: "field", field, type: field.type, start, end };
    }
    const definition = functions.get(name);
    if (definition === undefined) throw this.#unknown(name, start, end);
    return cursor.nested(cursor.afterSpace(), () => this.#call(definition, start, end));
  }

  #unknown(name: string, start: number, end: number): Fault {
    const known = [...fields.values()]
      .filter(({ phase }) => phase === "request" || this.#settings.phase === "response")
      .map((field) => field.name);
    const suggestion = nearestName(name, [...known, ...functions.keys(), "any", "all"]);
    return new Fault("unknown identifier", start, end, suggestion);
  }

  #call(definition: FunctionDefinition, start: number, nameEnd: number): CallNode {
    const cursor = this.#cursor;
    if (definition.onceAs !== undefined) {
      if (this.#once.has(definition.onceAs)) {
        const reason = "regex_replace and wildcard_replace can be used only once in an expression";
        throw new Fault(reason, start, nameEnd);
      }
      this.#once.add(definition.onceAs);
    }
    cursor.skipSpace();
    cursor.expect("(");
    cursor.skipSpace();
    const checker = new ArgumentChecker(definition);
    while (!cursor.ended && !cursor.at(")")) {
      if (checker.count > 0) cursor.expect(",");
      cursor.skipSpace();
      checker.add(this.#argument(), cursor.text.length);
      cursor.skipSpace();
    }
    const finished = checker.finish(cursor.pos, cursor.text.length);
    cursor.expect(")");
    return { kind: "call", definition, ...finished, start, end: cursor.pos };
  }

  /**
   * The first characters determine the kind of an argument. If they are ambiguous, every kind is tried in
   * turn.
   */
  #argument(): Argument {
    const cursor = this.#cursor;
    const { text, pos: start } = cursor;
    if (cursor.at('"') || cursor.at('r"') || cursor.at("r#"))
      return this.#literal("Bytes", () => readBytes(cursor));
    if (cursor.at("(") || cursor.at("not") || cursor.at("!") || this.#quantifierAt(start))
      return this.#logical();
    // A letter after f, or an underscore, among the first three characters cannot be part of a number or of
    // bytes.
    if (/^(?:[G-Zg-z_]|[0-9A-Fa-f][G-Zg-z_]|[0-9A-Fa-f]{2}[G-Zg-z_])/.test(text.slice(start, start + 3))) {
      return this.#indexArgument();
    }
    const attempts = [
      () => this.#indexArgument(),
      () => this.#literal("Ip", () => readIp(cursor)),
      () => this.#literal("Int", () => readInt(cursor)),
      () => this.#literal("Bytes", () => readBytes(cursor)),
    ];
    let suggestion: string | undefined;
    for (const attempt of attempts) {
      try {
        return attempt();
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        suggestion ??= error.suggestion;
        cursor.pos = start;
      }
    }
    throw new Fault("unrecognised input", start, text.length, suggestion);
  }

  #literal(type: "Bytes" | "Ip" | "Int", read: () => string | number | bigint): Argument {
    const start = this.#cursor.pos;
    const value = read();
    return { kind: "literal", type, value, start, end: this.#cursor.pos };
  }

  #indexArgument(): Argument {
    const index = this.#index();
    return atOperator(this.#cursor, this.#cursor.afterSpace()) ? this.#comparison(index) : index;
  }
}

function combined(op: CombiningName, left: LogicalNode, right: LogicalNode, start: number): CombiningNode {
  const end = right.end;
  const bracketed = left.kind === "combining" && left.start !== left.items[0]!.start;
  if (left.kind === "combining" && left.op === op && !bracketed) {
    return { ...left, items: [...left.items, right], end };
  }
  return { kind: "combining", op, items: [left, right], type: left.type, start, end };
}

function isMapped(node: Argument): boolean {
  return node.kind === "index" && node.eachCount > 0;
}

function nameOf(access: FieldAccess): string {
  if (access.kind === "each") return "MapEach";
  return access.kind === "at" ? `ArrayIndex(${access.index})` : `MapKey(${JSON.stringify(access.key)})`;
}
