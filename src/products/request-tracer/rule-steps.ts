import { originOverride } from "../../control/rulesets/origin-rule.ts";
import type { Rule, Ruleset } from "../../control/rulesets/ruleset.ts";
import {
  formatValue,
  parseExpression,
  trace,
  type FieldSource,
  type TraceNode,
} from "../../rules/language.ts";
import type { ShownPart, TracedStep } from "./step.ts";

const shownCharactersMax = 1000;

const shortened = (text: string): string =>
  text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;

const shownPart = ({ text, kind, operator, type, value, decides, children }: TraceNode): ShownPart => ({
  text: shortened(text),
  kind,
  ...(operator === undefined ? {} : { operator }),
  type,
  value: value === undefined ? null : shortened(formatValue(value, type)),
  decides,
  children: children.map(shownPart),
});

/** Evaluates a valid expression. The public "true", which is not of the language, has no parts. */
export function evaluated(expression: string, fields: FieldSource): { matched: boolean; parts?: ShownPart } {
  if (expression.trim() === "true") return { matched: true };
  const parsed = parseExpression(expression);
  if (!parsed.ok) throw new Error(`a stored rule is not valid: ${parsed.error.message}`);
  const { matched, root } = trace(parsed.expression, fields);
  return { matched, parts: shownPart(root) };
}

/** The rules of a phase, each with the value of every part of its expression. */
export function rulesetStep(ruleset: Ruleset, fields: FieldSource): TracedStep {
  const rules = ruleset.rules.map((rule) => ruleStep(rule, fields));
  if (ruleset.phase === "http_request_origin") markOverridden(ruleset.rules, rules);
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

function ruleStep(rule: Rule, fields: FieldSource): TracedStep {
  const { matched, parts } = evaluated(rule.expression, fields);
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
