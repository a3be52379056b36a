/**
 * The effect of a step. `depends`: the step happens only if a snippet or script passes the request on.
 * `hidden`: the caller may not read the step.
 */
export const outcomes = [
  "acted",
  "no_effect",
  "no_match",
  "not_reached",
  "disabled",
  "depends",
  "hidden",
] as const;
export type StepOutcome = (typeof outcomes)[number];

export const stepTypes = [
  "record",
  "settings",
  "setting",
  "ruleset",
  "rule",
  "routes",
  "route",
  "domain",
  "origin",
] as const;

/** A part of an expression, with its value as text; null if it is missing. */
export interface ShownPart {
  text: string;
  kind: string;
  operator?: string | undefined;
  type: string;
  value: string | null;
  decides: boolean;
  children: ShownPart[];
}

/** A step of a trace in the public shape; `outcome` and `parts` are ours. */
export interface TracedStep {
  step_name: string;
  type: (typeof stepTypes)[number];
  matched: boolean;
  outcome: StepOutcome;
  name?: string | undefined;
  kind?: string | undefined;
  description?: string | undefined;
  expression?: string | undefined;
  action?: string | undefined;
  action_parameters?: Record<string, unknown> | undefined;
  parts?: ShownPart | undefined;
  trace?: TracedStep[] | undefined;
}

/** The same steps for a request that does not reach them. */
export const unreached = (step: TracedStep): TracedStep => ({
  ...step,
  matched: false,
  outcome: step.outcome === "disabled" || step.outcome === "hidden" ? step.outcome : "not_reached",
  ...(step.trace === undefined ? {} : { trace: step.trace.map(unreached) }),
});
