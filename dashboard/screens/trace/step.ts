import type { Tone } from "../../parts/layout.tsx";

/** A part of an expression, with its value as text; null if it is missing. */
export interface Part {
  text: string;
  kind: string;
  operator?: string;
  type: string;
  value: string | null;
  /** Whether the result depends on it. */
  decides: boolean;
  children: Part[];
}

export type Outcome = "acted" | "no_effect" | "no_match" | "not_reached" | "disabled" | "depends" | "hidden";

/** A step of a trace, as the API shows it. */
export interface Step {
  step_name: string;
  type: string;
  matched: boolean;
  outcome: Outcome;
  name?: string;
  description?: string;
  expression?: string;
  action?: string;
  action_parameters?: Record<string, unknown>;
  parts?: Part;
  trace?: Step[];
}

export interface Trace {
  status_code?: number;
  trace: Step[];
}

/** The outcome in words, and how it is shown. */
export const outcomes: Record<Outcome, { text: string; tone: Tone }> = {
  acted: { text: "acted", tone: "ok" },
  no_effect: { text: "without effect", tone: "off" },
  no_match: { text: "did not match", tone: "off" },
  not_reached: { text: "not reached", tone: "off" },
  disabled: { text: "disabled", tone: "off" },
  depends: { text: "if the code passes it on", tone: "info" },
  hidden: { text: "not readable", tone: "warn" },
};

const titles: Record<string, string> = {
  dns_record: "Record",
  zone_settings: "Settings",
  http_request_origin: "Origin rules",
  http_request_snippets: "Snippets",
  worker_routes: "Routes",
  origin: "Origin",
  expression: "Expression",
};

/** The name of a phase. */
export const titleOf = ({ step_name: name }: Step): string => titles[name] ?? name;

/** The records of the host, as "A 192.0.2.1", if the token may read them. */
export const recordsOf = ({ action_parameters: parameters = {} }: Step): string[] =>
  Array.isArray(parameters["records"]) ? parameters["records"].map(String) : [];

/** The effect of a step in a few words: "port 8080, host app.internal". */
export function effectOf({ action, action_parameters: parameters = {} }: Step): string {
  const { snippet_name: snippet, ...others } = parameters;
  const effects = Object.entries(others).flatMap(effect);
  if (typeof snippet === "string") return [`snippet ${snippet}`, ...effects].join(" · ");
  return [...(action === undefined || action === "route" ? [] : [action]), ...effects].join(" · ");
}

function effect([name, value]: [string, unknown]): string[] {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return Object.entries(value).flatMap(([inner, each]) => effect([`${name} ${inner}`, each]));
  return [`${name.replaceAll("_", " ")} ${Array.isArray(value) ? value.join(", ") : String(value)}`];
}

/** The text of a part without its children: a part that combines others shows only its operator. */
export const shownText = ({ kind, operator, text }: Part): string =>
  kind === "combining" || kind === "not" ? (operator ?? text) : text;
