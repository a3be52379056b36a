import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { ApiError, apiErrors } from "../api/errors.ts";
import { expected } from "../api/if-match.ts";
import { operationsFor, type Call } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { PermissionKey } from "../access/permissions.ts";
import { expressionBytesMax } from "../../rules/syntax/parse.ts";
import { actionNames, actionParameters } from "./actions.ts";
import { checkExpression } from "./expression.ts";
import { rulesetErrors } from "./errors.ts";
import { phases, rulesetTag, type RulesetPhase, type Rule, type Ruleset } from "./ruleset.ts";
import type { RuleInput, Rulesets } from "./rulesets.ts";
import { rulesetErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  rulesets: Rulesets;
}

const { listOperation, operation, rawOperation } = operationsFor<Services>(rulesetErrorCodes);

const RuleSchema = z
  .object({
    id: z.string(),
    version: z.string(),
    ref: z.string(),
    action: z.string(),
    action_parameters: z.record(z.string(), z.unknown()),
    expression: z.string(),
    description: z.string(),
    enabled: z.boolean(),
    last_updated: z.string(),
    snippet_name: z.string().optional(),
  })
  .meta({ id: "Rule" });
const RulesetSummarySchema = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  kind: z.literal("zone"),
  phase: z.enum(phases),
  version: z.string(),
  last_updated: z.string(),
});
const RulesetSchema = RulesetSummarySchema.extend({ rules: z.array(RuleSchema) }).meta({ id: "Ruleset" });

const RuleInputSchema = z.strictObject({
  id: z.string().length(32).optional(),
  ref: z.string().min(1).max(64).optional(),
  version: z.string().optional(),
  last_updated: z.string().optional(),
  snippet_name: z.string().optional(),
  action: z.enum(actionNames),
  action_parameters: z.record(z.string(), z.unknown()),
  expression: z.string().min(1).max(expressionBytesMax),
  description: z.string().max(500).default(""),
  enabled: z.boolean().default(true),
});
const rulesMax = 300;
const RulesetInputSchema = z.strictObject({
  name: z.string().max(255).optional(),
  description: z.string().max(1024).optional(),
  kind: z.literal("zone").optional(),
  phase: z.enum(phases).optional(),
  rules: z.array(RuleInputSchema).max(rulesMax).default([]),
});

const summary = (ruleset: Ruleset) => ({
  id: ruleset.id,
  name: ruleset.name,
  description: ruleset.description,
  kind: "zone" as const,
  phase: ruleset.phase,
  version: String(ruleset.version),
  last_updated: isoTime(ruleset.lastUpdated),
});
const ruleResource = (rule: Rule): z.input<typeof RuleSchema> => ({
  id: rule.id,
  version: rule.version,
  ref: rule.ref,
  action: rule.action,
  action_parameters: rule.actionParameters,
  expression: rule.expression,
  description: rule.description,
  enabled: rule.enabled,
  last_updated: isoTime(rule.lastUpdated),
  ...(rule.action === "snippet" ? { snippet_name: rule.actionParameters["snippet_name"] as string } : {}),
});
const rulesetResource = (ruleset: Ruleset): z.input<typeof RulesetSchema> => ({
  ...summary(ruleset),
  rules: ruleset.rules.map(ruleResource),
});

/** A ruleset, with its tag in the answer. */
function tagged(
  call: Pick<Call<unknown, unknown, Services>, "etag">,
  ruleset: Ruleset,
): z.input<typeof RulesetSchema> {
  call.etag = rulesetTag(ruleset);
  return rulesetResource(ruleset);
}

/** The condition on one rule, whose tag is its version. Throws if the ruleset has no such rule. */
function expectedRule(incoming: IncomingMessage): (ruleset: Ruleset, id: string) => void {
  const check = expected(incoming);
  return ({ rules }, id) => {
    const rule = rules.find((candidate) => candidate.id === id);
    if (rule === undefined) throw rulesetErrors.ruleNotFound(id);
    check(rule.version);
  };
}

type RuleBody = z.output<typeof RuleInputSchema>;
async function ruleInput(body: RuleBody, phase: RulesetPhase, where: string): Promise<RuleInput> {
  const parameters = actionParameters(phase, body, where);
  const fault = await checkExpression(body.expression);
  if (fault !== undefined) throw new ApiError(400, 20127, fault, { pointer: `/body/${where}expression` });
  return {
    ...(body.id === undefined ? {} : { id: body.id }),
    ...(body.ref === undefined ? {} : { ref: body.ref }),
    action: body.action,
    actionParameters: parameters,
    expression: body.expression,
    description: body.description,
    enabled: body.enabled,
  };
}
const ruleInputs = (bodies: readonly RuleBody[], phase: RulesetPhase): Promise<RuleInput[]> =>
  Promise.all(bodies.map((body, index) => ruleInput(body, phase, `rules/${index}/`)));
async function rulesetInput(
  body: z.output<typeof RulesetInputSchema>,
  phase: RulesetPhase,
): Promise<{ name: string | undefined; description: string | undefined; rules: RuleInput[] }> {
  return { name: body.name, description: body.description, rules: await ruleInputs(body.rules, phase) };
}
const keep = (rule: Rule): RuleInput => {
  const { version: _version, lastUpdated: _lastUpdated, ...input } = rule;
  return input;
};

function phaseOf(params: Record<string, string>): RulesetPhase {
  const phase = phases.find((known) => known === params["phase"]);
  if (phase !== undefined) return phase;
  throw apiErrors.invalid(
    `Expected one of the phases ${phases.join(", ")} but received "${params["phase"]}", which this platform does not execute`,
    "/path/phase",
  );
}

const base = "/zones/{zone_id}/rulesets";
const read = { scope: "zone", permission: "origin_rules:read" } as const;
const edit = { scope: "zone", permission: "origin_rules:edit" } as const;

type Level = "read" | "edit";
const permissionFor = (phase: RulesetPhase, level: Level): PermissionKey =>
  phase === "http_request_snippets" ? `snippets:${level}` : `origin_rules:${level}`;
type Asked = Pick<Call<unknown, unknown, Services>, "actor" | "zone" | "services" | "params">;
const may = ({ actor, zone }: Asked, phase: RulesetPhase, level: Level): boolean =>
  actor.can(permissionFor(phase, level), { zoneId: zone.id, accountId: zone.accountId });

function permit(call: Asked, phase: RulesetPhase, level: Level): void {
  const [area] = permissionFor(phase, level).split(":");
  if (!may(call, phase, level))
    throw apiErrors.unauthorized(`the permission to ${level} ${area!.replace("_", " ")} on the zone`);
}

/** The ruleset in the path. Throws if the caller lacks the permission for its phase. */
async function permitted(call: Asked, level: Level): Promise<Ruleset> {
  const ruleset = await call.services.rulesets.find(call.zone.id, call.params["ruleset_id"]!);
  permit(call, ruleset.phase, level);
  return ruleset;
}

/**
 * Operations on the entrypoint, with one path for each area, because the path decides which permission is
 * needed.
 */
const entrypointOperations = (area: "origin_rules" | "snippets", segment: string, suffix: string) => [
  operation({
    id: `ruleset_entrypoint_get${suffix}`,
    method: "GET",
    path: `${base}/phases/${segment}/entrypoint`,
    summary: suffix === "" ? "Get the rules of a phase" : "Get the snippet rules as a ruleset",
    access: { scope: "zone", permission: `${area}:read` },
    result: RulesetSchema,
    handle: async (call) => {
      const { zone, params, services } = call;
      const phase = phaseOf({ phase: segment, ...params });
      return tagged(call, await services.rulesets.entrypoint(zone.id, phase));
    },
  }),
  operation({
    id: `ruleset_entrypoint_put${suffix}`,
    takesIfMatch: true,
    method: "PUT",
    path: `${base}/phases/${segment}/entrypoint`,
    summary: suffix === "" ? "Replace all rules of a phase" : "Replace all snippet rules as a ruleset",
    access: { scope: "zone", permission: `${area}:edit` },
    body: RulesetInputSchema,
    result: RulesetSchema,
    async handle(call) {
      const { zone, params, body, services, incoming } = call;
      const phase = phaseOf({ phase: segment, ...params });
      const input = await rulesetInput(body, phase);
      const check = expected(incoming);
      const change = (current: Ruleset | undefined): typeof input => {
        check(current && rulesetTag(current));
        return input;
      };
      return tagged(call, await services.rulesets.putEntrypoint(zone.id, phase, change));
    },
  }),
];

export const rulesetOperations = [
  ...entrypointOperations("origin_rules", "{phase}", ""),
  ...entrypointOperations("snippets", "http_request_snippets", "_snippets"),
  listOperation({
    id: "account_ruleset_list",
    method: "GET",
    path: "/accounts/{account_id}/rulesets",
    summary: "List the account's rulesets, which is empty because rules belong to zones",
    access: { scope: "account", permission: "account_settings:read" },
    query: pageQuery({ default: 50, max: 50 }).extend({ cursor: z.string().max(100).optional() }),
    result: RulesetSummarySchema,
    handle: async ({ query }) => paginate([], query),
  }),
  listOperation({
    id: "ruleset_list",
    method: "GET",
    path: base,
    summary: "List the zone's rulesets, without their rules",
    access: read,
    query: pageQuery({ default: 50, max: 50 }).extend({ cursor: z.string().max(100).optional() }),
    result: RulesetSummarySchema,
    async handle(call) {
      const rulesets = await call.services.rulesets.list(call.zone.id);
      return paginate(rulesets.filter(({ phase }) => may(call, phase, "read")).map(summary), call.query);
    },
  }),
  operation({
    id: "ruleset_create",
    method: "POST",
    path: base,
    summary: "Create the ruleset of a phase",
    access: edit,
    body: RulesetInputSchema.extend({
      name: z.string().min(1).max(255),
      kind: z.literal("zone"),
      phase: z.enum(phases),
    }),
    result: RulesetSchema,
    async handle(call) {
      const { zone, body, services } = call;
      permit(call, body.phase, "edit");
      const input = await rulesetInput(body, body.phase);
      return rulesetResource(await services.rulesets.putEntrypoint(zone.id, body.phase, () => input, true));
    },
  }),
  operation({
    id: "ruleset_get",
    method: "GET",
    path: `${base}/{ruleset_id}`,
    summary: "Get a ruleset",
    access: read,
    result: RulesetSchema,
    handle: async (call) => tagged(call, await permitted(call, "read")),
  }),
  operation({
    id: "ruleset_update",
    takesIfMatch: true,
    method: "PUT",
    path: `${base}/{ruleset_id}`,
    summary: "Replace all rules of a ruleset",
    access: edit,
    body: RulesetInputSchema.extend({ id: z.string().optional() }),
    result: RulesetSchema,
    async handle(call) {
      const { id, phase } = await permitted(call, "edit");
      const input = await rulesetInput(call.body, phase);
      const check = expected(call.incoming);
      const changed = await call.services.rulesets.edit(call.zone.id, id, (current) => {
        check(rulesetTag(current));
        return input;
      });
      return tagged(call, changed);
    },
  }),
  rawOperation({
    id: "ruleset_delete",
    takesIfMatch: true,
    method: "DELETE",
    path: `${base}/{ruleset_id}`,
    summary: "Delete a ruleset",
    access: edit,
    async handle(call) {
      const { id } = await permitted(call, "edit");
      const check = expected(call.incoming);
      await call.services.rulesets.delete(call.zone.id, id, (current) => check(rulesetTag(current)));
      return new Response(null, { status: 204 });
    },
  }),
  operation({
    id: "ruleset_rule_create",
    method: "POST",
    path: `${base}/{ruleset_id}/rules`,
    summary: "Append a rule",
    access: edit,
    body: RuleInputSchema.omit({ id: true }),
    result: RulesetSchema,
    async handle(call) {
      const { id, phase } = await permitted(call, "edit");
      const rule = await ruleInput(call.body, phase, "");
      const changed = await call.services.rulesets.edit(call.zone.id, id, (current) => {
        if (current.rules.length >= rulesMax)
          throw apiErrors.invalid(`Expected at most ${rulesMax} rules in a ruleset`);
        return { rules: [...current.rules.map(keep), rule] };
      });
      return rulesetResource(changed);
    },
  }),
  operation({
    id: "ruleset_rule_edit",
    takesIfMatch: true,
    method: "PATCH",
    path: `${base}/{ruleset_id}/rules/{rule_id}`,
    summary: "Replace one rule",
    access: edit,
    body: RuleInputSchema,
    result: RulesetSchema,
    async handle(call) {
      const ruleset = await permitted(call, "edit");
      const id = call.params["rule_id"]!;
      const rule = { ...(await ruleInput(call.body, ruleset.phase, "")), id };
      const checkRule = expectedRule(call.incoming);
      const changed = await call.services.rulesets.edit(call.zone.id, ruleset.id, (current) => {
        checkRule(current, id);
        return { rules: current.rules.map((candidate) => (candidate.id === id ? rule : keep(candidate))) };
      });
      return rulesetResource(changed);
    },
  }),
  operation({
    id: "ruleset_rule_delete",
    takesIfMatch: true,
    method: "DELETE",
    path: `${base}/{ruleset_id}/rules/{rule_id}`,
    summary: "Delete one rule",
    access: edit,
    result: RulesetSchema,
    async handle(call) {
      const ruleset = await permitted(call, "edit");
      const id = call.params["rule_id"]!;
      const checkRule = expectedRule(call.incoming);
      const changed = await call.services.rulesets.edit(call.zone.id, ruleset.id, (current) => {
        checkRule(current, id);
        return { rules: current.rules.filter((rule) => rule.id !== id).map(keep) };
      });
      return rulesetResource(changed);
    },
  }),
];
