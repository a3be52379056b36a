import { setImmediate as others } from "node:timers/promises";
import { inputErrors } from "../../platform/domain-error.ts";
import { originOverride } from "../../control/rulesets/origin-rule.ts";
import type { Rule, Ruleset } from "../../control/rulesets/ruleset.ts";
import {
  evaluate,
  formatValue,
  parseExpression,
  TooMuchWork,
  trace,
  workMax,
  type FieldSource,
  type TraceNode,
} from "../../rules/language.ts";
import type { ShownPart, TracedStep } from "./step.ts";

const shownCharactersMax = 1000;

const shortened = (text: string): string =>
  text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;

/** Characters of a part besides its text and its value. */
const aroundPart = 100;

/** The number of characters that a response still has for parts. */
export interface PartsRoom {
  characters: number;
}

/** Parts are shown until a response has a million characters of them. Later rules are shown without parts. */
export const partsRoom = (): PartsRoom => ({ characters: 1_000_000 });

function shownPart(node: TraceNode, room: PartsRoom): ShownPart {
  const { kind, operator, type, decides, children } = node;
  const text = shortened(node.text);
  const value =
    node.value === undefined ? null : shortened(formatValue(node.value, type, shownCharactersMax));
  room.characters -= aroundPart + text.length + (value?.length ?? 0);
  return {
    text,
    kind,
    ...(operator === undefined ? {} : { operator }),
    type,
    value,
    decides,
    children: children.map((child) => shownPart(child, room)),
  };
}

/** Evaluates a valid expression. The public API's "true", which is not part of the language, has no parts. */
export function evaluated(
  expression: string,
  fields: FieldSource,
  room: PartsRoom,
): { matched: boolean; parts?: ShownPart } {
  if (expression.trim() === "true") return { matched: true };
  const parsed = parseExpression(expression);
  if (!parsed.ok) throw new Error(`a stored rule is not valid: ${parsed.error.message}`);
  try {
    if (room.characters <= 0) return { matched: evaluate(parsed.expression, fields) };
    const { matched, root } = trace(parsed.expression, fields);
    return { matched, parts: shownPart(root, room) };
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    throw inputErrors.invalid(
      `Expected a request for which the functions and searches of the rules read and write at most ${workMax} characters`,
      "/body",
    );
  }
}

/** The rules of a phase, each with the value of every part of its expression. Other work runs between two rules. */
export async function rulesetStep(
  ruleset: Ruleset,
  fields: FieldSource,
  room: PartsRoom,
): Promise<TracedStep> {
  const rules: TracedStep[] = [];
  for (const rule of ruleset.rules) {
    rules.push(ruleStep(rule, fields, room));
    await others();
  }
  if (ruleset.phase === "http_request_origin") markOverridden(ruleset.rules, rules);
  if (ruleset.phase === "http_request_snippets") markBehind(rules);
  const hasActed = rules.some(({ outcome }) => outcome === "acted");
  return {
    step_name: ruleset.phase,
    type: "ruleset",
    matched: rules.some(({ matched }) => matched),
    outcome: hasActed ? "acted" : "no_match",
    name: ruleset.name,
    kind: ruleset.kind,
    description: ruleset.description,
    trace: rules,
  };
}

function ruleStep(rule: Rule, fields: FieldSource, room: PartsRoom): TracedStep {
  const { matched, parts } = evaluated(rule.expression, fields, room);
  return {
    step_name: rule.id,
    type: "rule",
    matched: matched && rule.enabled,
    outcome: rule.enabled ? (matched ? "acted" : "no_match") : "disabled",
    description: rule.description,
    expression: rule.expression,
    action: rule.action,
    action_parameters: rule.actionParameters,
    ...(parts === undefined ? {} : { parts }),
  };
}

/** A snippet runs if those before it pass the request on. */
function markBehind(steps: readonly TracedStep[]): void {
  for (const step of steps.filter(({ outcome }) => outcome === "acted").slice(1)) step.outcome = "depends";
}

/** A rule that matches has no effect if later rules that match set the same values. */
function markOverridden(rules: readonly Rule[], steps: readonly TracedStep[]): void {
  const later = new Set<string>();
  for (let at = rules.length - 1; at >= 0; at--) {
    const step = steps[at]!;
    if (step.outcome !== "acted") continue;
    const sets = Object.keys(originOverride(rules[at]!));
    if (sets.every((name) => later.has(name))) step.outcome = "no_effect";
    for (const name of sets) later.add(name);
  }
}
