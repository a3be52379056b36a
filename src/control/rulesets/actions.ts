import { z } from "zod";
import { inputErrors } from "../../platform/domain-error.ts";
import { validate } from "../api/validation.ts";
import { OriginParametersSchema } from "./origin-rule.ts";
import type { RulesetPhase } from "./ruleset.ts";

const actions = {
  http_request_origin: { action: "route", parameters: OriginParametersSchema },
  http_request_snippets: {
    action: "snippet",
    parameters: z.strictObject({ snippet_name: z.string().min(1).max(255) }),
  },
} as const satisfies Record<RulesetPhase, { action: string; parameters: z.ZodType }>;

export const actionNames = ["route", "snippet"] as const;

/**
 * Validates the action and parameters of a rule against its phase, and returns the parameters. Throws
 * DomainError.
 */
export function actionParameters(
  phase: RulesetPhase,
  rule: { action: string; action_parameters: Record<string, unknown>; snippet_name?: string | undefined },
  where: string,
): Record<string, unknown> {
  const { action, parameters } = actions[phase];
  if (rule.action !== action) {
    throw inputErrors.invalid(
      `Expected "${action}" for ${where}action, as in every rule of the phase ${phase}, but received "${rule.action}"`,
      `/body/${where}action`,
    );
  }
  const checked = validate(parameters, rule.action_parameters, `body/${where}action_parameters`);
  // Rules are also read with the name outside their parameters, and clients may send it back there.
  const name = "snippet_name" in checked ? checked.snippet_name : undefined;
  if (rule.snippet_name !== undefined && rule.snippet_name !== name) {
    throw inputErrors.invalid(
      `Expected no value, or the same as in action_parameters, for ${where}snippet_name but received "${rule.snippet_name}"`,
      `/body/${where}snippet_name`,
    );
  }
  return checked;
}
