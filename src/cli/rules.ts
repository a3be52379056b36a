import { readFileSync } from "node:fs";
import type { Command } from "commander";
import {
  compile,
  formatValue,
  parseExpression,
  requestFields,
  trace,
  type Expression,
  type ExpressionPhase,
  type TraceNode,
} from "../rules/language.ts";
import { readRequest } from "../rules/request/read-request.ts";
import { print, printNote } from "./output.ts";

interface CheckOptions {
  phase: ExpressionPhase;
  json?: boolean;
}
interface TraceOptions extends CheckOptions {
  request: string;
  ip?: string;
}

/** `rules check` and `rules trace`: validate and evaluate a rule's expression without a server. */
export function registerRulesCommand(program: Command): void {
  const rules = program.command("rules").description("validate and evaluate filter expressions");
  const check = rules.command("check <expression>").description("check whether an expression is valid");
  addCommonOptions(check).action((text: string, options: CheckOptions) => {
    const expression = parseOrReport(text, options);
    if (expression === undefined) return;
    compile(expression);
    print(options.json === true ? JSON.stringify({ valid: true }) : "valid");
  });

  const explain = rules
    .command("trace <expression>")
    .description("print the value of every part for a request");
  addCommonOptions(explain)
    .requiredOption("--request <file>", "the request, as HTTP text or JSON; - for standard input")
    .option("--ip <address>", "the client's address, if the request does not include it")
    .action((text: string, options: TraceOptions) => {
      const expression = parseOrReport(text, options);
      if (expression === undefined) return;
      const source = readFileSync(options.request === "-" ? 0 : options.request, "latin1");
      const fields = requestFields(readRequest(source, options.ip));
      const { matched, root } = trace(expression, fields);
      if (options.json === true) print(JSON.stringify({ matched, root: jsonOf(root) }, null, 2));
      else print(`${treeOf(root).join("\n")}\n\n${matched ? "matched" : "not matched"}`);
    });
  for (const command of [rules, check, explain]) command.exitOverride();
}

function addCommonOptions(command: Command): Command {
  return command.option("--phase <phase>", "request or response", "request").option("--json", "print JSON");
}

function parseOrReport(text: string, options: CheckOptions): Expression | undefined {
  if (options.phase !== "request" && options.phase !== "response") {
    throw new Error(`Expected request or response for phase but received ${JSON.stringify(options.phase)}`);
  }
  const result = parseExpression(text, { phase: options.phase });
  if (result.ok) return result.expression;
  const { error } = result;
  process.exitCode = 1;
  if (options.json === true) {
    print(JSON.stringify({ valid: false, error }, null, 2));
  } else {
    const hint = error.suggestion === undefined ? "" : `\nDid you mean ${error.suggestion}?`;
    printNote(`${error.message}${hint}`);
  }
  return undefined;
}

function treeOf(node: TraceNode, depth = 0): string[] {
  const text = node.text.replaceAll(/\s+/g, " ");
  const line = `${"  ".repeat(depth)}${text}  =  ${formatValue(node.value, node.type)}`;
  return [line, ...node.children.flatMap((child) => treeOf(child, depth + 1))];
}

function jsonOf(node: TraceNode): unknown {
  const { text, kind, type, value, children } = node;
  return {
    text,
    kind,
    type,
    value: value === undefined ? null : formatValue(value, type),
    children: children.map(jsonOf),
  };
}
