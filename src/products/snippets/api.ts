import { z } from "zod";
import { ApiError, ApiErrors } from "../../control/api/errors.ts";
import { expected } from "../../control/api/if-match.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { readUploadForm } from "../../control/api/upload-form.ts";
import { checkExpression } from "../../control/rulesets/expression.ts";
import { rulesTag, type Rule } from "../../control/rulesets/ruleset.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { plans } from "../../control/zones/plans.ts";
import { expressionBytesMax } from "../../rules/syntax/parse.ts";
import { snippetErrors } from "./errors.ts";
import { snippetNamePattern, type SnippetSummary } from "./snippet.ts";
import { snippetNameOf, type Snippets } from "./snippets.ts";
import { readSnippetUpload, SnippetMetadataSchema } from "./upload.ts";
import { snippetErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  snippets: Snippets;
}

const { listOperation, operation, rawOperation } = operationsFor<Services>(snippetErrorCodes);

const TimeSchema = z.string().meta({ format: "date-time" });
const SnippetSchema = z
  .object({ snippet_name: z.string(), created_on: TimeSchema, modified_on: TimeSchema })
  .meta({ id: "Snippet", description: "Code that runs for requests that match a rule" });

const SnippetRuleSchema = z
  .object({
    id: z.string(),
    description: z.string(),
    enabled: z.boolean(),
    expression: z.string(),
    snippet_name: z.string(),
    last_updated: TimeSchema,
    version: z.string(),
  })
  .meta({ id: "SnippetRule" });

const snippetResource = (snippet: SnippetSummary): z.input<typeof SnippetSchema> => ({
  snippet_name: snippet.name,
  created_on: isoTime(snippet.createdOn),
  modified_on: isoTime(snippet.modifiedOn),
});
const ruleResource = (rule: Rule): z.input<typeof SnippetRuleSchema> => ({
  id: rule.id,
  description: rule.description,
  enabled: rule.enabled,
  expression: rule.expression,
  snippet_name: snippetNameOf(rule),
  last_updated: isoTime(rule.lastUpdated),
  version: rule.version,
});

const base = "/zones/{zone_id}/snippets";
const snippetPath = `${base}/{snippet_name}`;
const nameIn = (params: Record<string, string>): string => params["snippet_name"]!;
const read = { scope: "zone", permission: "snippets:read" } as const;
const edit = { scope: "zone", permission: "snippets:edit" } as const;

/** Twice the allowed code size, so that slightly too large uploads get an error with their size. */
const uploadLimits = { bodyBytesMax: 1024 * 1024, partBytesMax: 1024 * 1024, partsMax: 100 };
const moduleType = "application/javascript+module";

const snippetOperationsOf = [
  listOperation({
    id: "snippet_list",
    method: "GET",
    path: base,
    summary: "List the zone's snippets by name",
    access: read,
    query: pageQuery({ default: 25, max: 1000 }),
    result: SnippetSchema,
    handle: async ({ zone, query, services }) =>
      paginate((await services.snippets.list(zone.id)).map(snippetResource), query),
  }),
  operation({
    id: "snippet_get",
    method: "GET",
    path: snippetPath,
    summary: "Get a snippet, without its code",
    access: read,
    result: SnippetSchema,
    handle: async ({ zone, params, services }) =>
      snippetResource(await services.snippets.find(zone.id, nameIn(params))),
  }),
  rawOperation({
    id: "snippet_content_get",
    method: "GET",
    path: `${snippetPath}/content`,
    summary: "Get a snippet's code as multipart/form-data with a part for each file",
    access: read,
    async handle({ zone, params, services }) {
      const { modules, mainModule, version } = await services.snippets.find(zone.id, nameIn(params));
      const form = new FormData();
      for (const { name, content } of modules)
        form.append(name, new File([content], name, { type: moduleType }));
      return new Response(form, { headers: { "cf-entrypoint": mainModule, etag: `"${version}"` } });
    },
  }),
  operation({
    id: "snippet_put",
    takesIfMatch: true,
    method: "PUT",
    path: snippetPath,
    summary: "Create a snippet, or replace its code",
    access: edit,
    bodyKind: "own",
    body: z.object({
      metadata: SnippetMetadataSchema,
      files: z.array(z.string().meta({ format: "binary" })).max(1000),
    }),
    result: SnippetSchema,
    async handle(call) {
      const { zone, params, incoming, services } = call;
      const name = nameIn(params);
      const form = await readUploadForm(incoming, uploadLimits);
      if (!snippetNamePattern.test(name)) throw snippetErrors.badName(name);
      const { snippetsMax, snippetBytesMax } = plans[zone.plan];
      if (snippetsMax === 0) throw snippetErrors.notInPlan(zone.plan);
      const upload = await readSnippetUpload(form, { codeBytesMax: snippetBytesMax });
      const snippet = await services.snippets.put(zone, name, upload, expected(incoming));
      call.etag = snippet.version;
      return snippetResource(snippet);
    },
  }),
  operation({
    id: "snippet_delete",
    method: "DELETE",
    path: snippetPath,
    summary: "Delete a snippet that has no rule",
    access: edit,
    result: z.null(),
    async handle({ zone, params, services }) {
      await services.snippets.delete(zone.id, nameIn(params));
      return null;
    },
  }),
];

const rulesMax = 300;
const RuleInputSchema = z.strictObject({
  // Clients send rules back as they read them. A rule is identified by its snippet; these fields are ignored.
  id: z.string().max(64).optional(),
  last_updated: z.string().max(64).optional(),
  version: z.string().max(64).optional(),
  description: z.string().max(500).default(""),
  enabled: z.boolean().default(false),
  expression: z.string().min(1).max(expressionBytesMax),
  snippet_name: z.string().min(1).max(255),
});
const SnippetRulesSchema = z.array(SnippetRuleSchema);

const snippetRuleOperations = [
  operation({
    id: "snippet_rules_get",
    method: "GET",
    path: `${base}/snippet_rules`,
    summary: "Get the snippet rules in order",
    access: read,
    result: SnippetRulesSchema,
    async handle(call) {
      const rules = await call.services.snippets.rules(call.zone.id);
      call.etag = rulesTag(rules);
      return rules.map(ruleResource);
    },
  }),
  operation({
    id: "snippet_rules_put",
    takesIfMatch: true,
    method: "PUT",
    path: `${base}/snippet_rules`,
    summary: "Replace all snippet rules, or change nothing",
    access: edit,
    body: z.strictObject({ rules: z.array(RuleInputSchema).max(rulesMax) }),
    result: SnippetRulesSchema,
    async handle(call) {
      const { zone, body, services, incoming } = call;
      await checkExpressions(body.rules.map(({ expression }) => expression));
      const rules = body.rules.map(({ expression, description, enabled, snippet_name: snippetName }) => ({
        expression,
        description,
        enabled,
        snippetName,
      }));
      const check = expected(incoming);
      const replaced = await services.snippets.replaceRules(zone.id, rules, (now) => check(rulesTag(now)));
      call.etag = rulesTag(replaced);
      return replaced.map(ruleResource);
    },
  }),
  operation({
    id: "snippet_rules_delete",
    takesIfMatch: true,
    method: "DELETE",
    path: `${base}/snippet_rules`,
    summary: "Delete all snippet rules",
    access: edit,
    result: SnippetRulesSchema,
    async handle({ zone, services, incoming }) {
      const check = expected(incoming);
      return (await services.snippets.replaceRules(zone.id, [], (now) => check(rulesTag(now)))).map(
        ruleResource,
      );
    },
  }),
];

/** Reports all invalid expressions, each with its rule's index and its position. */
async function checkExpressions(expressions: readonly string[]): Promise<void> {
  const faults: ApiError[] = [];
  for (const [index, expression] of expressions.entries()) {
    const fault = await checkExpression(expression);
    if (fault === undefined) continue;
    const pointer = `/body/rules/${index}/expression`;
    faults.push(new ApiError(400, 20127, `rules[${index}].expression: ${fault}`, { pointer }));
  }
  if (faults.length > 0) throw new ApiErrors(faults);
}

export const snippetOperations = [...snippetRuleOperations, ...snippetOperationsOf];
