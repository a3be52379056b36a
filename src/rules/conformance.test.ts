import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  compile,
  createLists,
  evaluate,
  parseExpression,
  requestFields,
  trace,
  type RequestDescription,
} from "./language.ts";

interface Case {
  expression: string;
  request: string;
  result: boolean;
}
interface ErrorCase {
  expression: string;
  line: number;
  column: number;
  length: number;
  reason: string;
  suggestion?: string;
}

function read<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8")) as T;
}

const { requests } = read<{ requests: Record<string, RequestDescription> }>("conformance-requests.json");
const { cases } = read<{ cases: Case[] }>("conformance.json");
const { errors } = read<{ errors: ErrorCase[] }>("conformance-errors.json");
const lists = createLists({
  blocked: { type: "Ip", items: ["203.0.113.0/24", "198.51.100.7"] },
  hosts: { type: "Bytes", items: ["www.example.com", "api.example.com"] },
  numbers: { type: "Int", items: [1, 3320] },
  "cf.open_proxies": { type: "Ip", items: [] },
});

describe("expressions", () => {
  it.each(cases)("$expression on $request is $result", ({ expression: text, request, result }) => {
    const parsed = parseExpression(text, { lists: lists.lookup });
    if (!parsed.ok) throw new Error(parsed.error.message);
    const { expression } = parsed;
    const fields = requestFields(requests[request]!);
    expect(evaluate(expression, fields, lists.source)).toBe(result);
    expect(compile(expression, lists.source)(fields)).toBe(result);
    expect(trace(expression, fields, lists.source).matched).toBe(result);
  });
});

describe("rejected expressions", () => {
  it.each(errors)("$expression: $reason", ({ expression, ...expected }) => {
    const parsed = parseExpression(expression, { lists: lists.lookup });
    if (parsed.ok) throw new Error("was accepted");
    const { message, ...error } = parsed.error;
    expect(error).toEqual(expected);
    expect(message).toContain(`Filter parsing error (${expected.line}:${expected.column}):\n`);
    expect(message.endsWith(`${"^".repeat(expected.length)} ${expected.reason}`)).toBe(true);
  });
});
