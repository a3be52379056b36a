import { isIP, type AddressInfo } from "node:net";
import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { sensitive } from "../../control/api/sensitive.ts";
import { checkExpression } from "../../control/rulesets/expression.ts";
import type { RequestCf } from "../../edge/client-info/request-cf.ts";
import type { EdgeSnapshot } from "../../edge/configuration/snapshot.ts";
import { edgeDefaults } from "../../edge/http/settings.ts";
import { requestFields } from "../../rules/language.ts";
import { describeRequest, type AskedRequest } from "./described-request.ts";
import { evaluated, partsRoom } from "./rule-steps.ts";
import { sendRequest } from "./send-request.ts";
import { outcomes, stepTypes, type ShownPart, type TracedStep } from "./step.ts";
import { traceRequest, type TracedConfiguration } from "./trace-request.ts";

/** The services that these operations use. */
interface Services {
  requestTracer: {
    configuration: TracedConfiguration;
    snapshot: EdgeSnapshot;
    requestCf: RequestCf;
    /** The address of the edge for a scheme; undefined if it does not listen. */
    edgeAddress: (scheme: "http" | "https") => AddressInfo | undefined;
  };
}

const { operation } = operationsFor<Services>();

const headersMax = 100;
const textMax = 8192;
const bodyMax = 1024 * 1024;
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
const token = z
  .string()
  .max(256)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: "an HTTP token" });
const fieldValue = z
  .string()
  .max(textMax)
  // oxlint-disable-next-line no-control-regex
  .regex(/^[^\x00-\x08\x0a-\x1f\x7f]*$/, { error: "a text in one line without control characters" });
const few = (given: object): boolean => Object.keys(given).length <= headersMax;
const fields = sensitive(z.record(token, fieldValue).refine(few, `at most ${headersMax} fields`));

const GeolocationSchema = z.strictObject({
  city: z.string().max(256).optional(),
  continent: z.string().max(2).optional(),
  is_eu_country: z.boolean().optional(),
  iso_code: z.string().max(2).optional(),
  latitude: z.number().min(-90).max(90).optional(),
  longitude: z.number().min(-180).max(180).optional(),
  postal_code: z.string().max(64).optional(),
  region_code: z.string().max(16).optional(),
  subdivision_2_iso_code: z.string().max(16).optional(),
  timezone: z.string().max(64).optional(),
});

const BodySchema = z.strictObject({
  method: z
    .string()
    .transform((method) => method.toUpperCase())
    .pipe(z.enum(methods)),
  url: z.string().max(textMax),
  headers: fields.optional(),
  cookies: fields.optional(),
  protocol: z.enum(["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"]).optional(),
  body: sensitive(
    z.strictObject({
      base64: z.base64().max(bodyMax).optional(),
      json: z.json().optional(),
      plain_text: z.string().max(bodyMax).optional(),
    }),
  ).optional(),
  context: z
    .strictObject({
      bot_score: z.int().min(1).max(99).optional(),
      geoloc: GeolocationSchema.optional(),
      skip_challenge: z.boolean().optional(),
      threat_score: z.int().optional(),
      client_ip: z
        .string()
        .refine((text) => isIP(text) !== 0, "an IP address")
        .optional()
        .meta({ description: "Address of the visitor (not in the public API)" }),
    })
    .optional(),
  skip_response: z.boolean().optional().meta({ description: "Send no request to the origin" }),
  expression: z
    .string()
    .max(4096)
    .optional()
    .meta({ description: "Also evaluate an expression that is not in any rule (not in the public API)" }),
});

const PartSchema: z.ZodType<ShownPart> = z
  .object({
    text: z.string(),
    kind: z.string(),
    operator: z.string().optional(),
    type: z.string(),
    value: z.string().nullable(),
    decides: z.boolean(),
    get children() {
      return z.array(PartSchema);
    },
  })
  .meta({ id: "RequestTracePart", description: "A part of an expression with its value" });

const StepSchema: z.ZodType<TracedStep> = z
  .object({
    step_name: z.string(),
    type: z.enum(stepTypes),
    matched: z.boolean(),
    outcome: z.enum(outcomes),
    name: z.string().optional(),
    kind: z.string().optional(),
    description: z.string().optional(),
    expression: z.string().optional(),
    action: z.string().optional(),
    action_parameters: z.record(z.string(), z.unknown()).optional(),
    parts: PartSchema.optional(),
    get trace() {
      return z.array(StepSchema).optional();
    },
  })
  .meta({ id: "RequestTraceStep" });

const traceOperation = operation({
  id: "request_trace",
  method: "POST",
  path: "/accounts/{account_id}/request-tracer/trace",
  summary: "Trace a request through the configuration of its zone",
  access: { scope: "account", permission: "request_tracer:read" },
  // The request that it sends may change something at an origin or in a script.
  audit: "ahead",
  isDry: ({ skip_response }) => skip_response === true,
  bodyBytesMax: 2 * bodyMax,
  body: BodySchema,
  result: z.object({ status_code: z.int().optional(), trace: z.array(StepSchema) }),
  async handle({ account, actor, body, services, messages }) {
    const { configuration, snapshot, requestCf, edgeAddress } = services.requestTracer;
    const asked = askedRequest(body);
    const host = asked.url.hostname;
    const zone = snapshot.findZone(host);
    const target = { zoneId: zone?.id ?? "", accountId: account.id };
    if (zone?.configuration?.accountId !== account.id || !actor.can("zone:read", target))
      throw apiErrors.invalid(
        `Expected a URL of a zone in this account for url but received the host ${host}`,
        "/body/url",
      );
    if (body.context?.threat_score !== undefined || body.context?.skip_challenge !== undefined)
      messages.push({
        code: 10_001,
        message: "threat_score and skip_challenge are ignored: there are no challenges",
      });
    const description = describeRequest(asked, (headers, path) =>
      requestCf.forTrace({ ip: asked.clientAddress, path, headers }, zone.id),
    );
    const readable = {
      records: actor.can("dns_records:read", target),
      settings: actor.can("zone_settings:read", target),
      originRules: actor.can("origin_rules:read", target),
      snippets: actor.can("snippets:read", target),
      routes: actor.can("workers_routes:read", target),
      origin: actor.can("origin_rules:read", target) && actor.can("dns_records:read", target),
    };
    const request = { description, host, authority: asked.url.host, zone };
    const trace = await traceRequest(request, readable, configuration);
    if (body.expression !== undefined) trace.push(await expressionStep(body.expression, description));
    const address = edgeAddress(asked.url.protocol === "https:" ? "https" : "http");
    const status =
      body.skip_response === true || address === undefined ? undefined : await sendRequest(asked, address);
    return { ...(status === undefined ? {} : { status_code: status }), trace };
  },
});

/** Evaluates an expression that is not in any rule. */
async function expressionStep(
  expression: string,
  description: Parameters<typeof requestFields>[0],
): Promise<TracedStep> {
  const invalid = await checkExpression(expression);
  if (invalid !== undefined) throw apiErrors.invalid(invalid, "/body/expression");
  const { matched, parts } = evaluated(expression, requestFields(description), partsRoom());
  return {
    step_name: "expression",
    type: "rule",
    matched,
    outcome: matched ? "no_effect" : "no_match",
    expression,
    ...(parts === undefined ? {} : { parts }),
  };
}

function askedRequest(body: z.output<typeof BodySchema>): AskedRequest {
  const url = URL.parse(body.url);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw apiErrors.invalid(
      `Expected an http or https URL for url but received ${JSON.stringify(body.url)}`,
      "/body/url",
    );
  checkFields({ ...body.headers }, { ...body.cookies });
  return {
    method: body.method,
    url,
    headers: body.headers ?? {},
    cookies: body.cookies ?? {},
    body: bytesOfBody(body.body),
    httpVersion: body.protocol ?? "HTTP/1.1",
    clientAddress: body.context?.client_ip ?? "192.0.2.1",
    geolocation: body.context?.geoloc ?? {},
    botScore: body.context?.bot_score,
  };
}

/** The edge would refuse more than this, and rules would compare it many times. */
function checkFields(...lists: readonly Record<string, string>[]): void {
  const { headerBytesMax } = edgeDefaults;
  const bytes = lists
    .flatMap((list) => Object.entries(list).flat())
    .reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes > headerBytesMax)
    throw apiErrors.invalid(
      `Expected headers and cookies of at most ${headerBytesMax} bytes but received ${bytes}`,
      "/body/headers",
    );
}

function bytesOfBody(given: z.output<typeof BodySchema>["body"]): Buffer | undefined {
  if (given === undefined) return undefined;
  const forms = Object.keys(given);
  if (forms.length !== 1)
    throw apiErrors.invalid("Expected one of base64, json and plain_text for body", "/body/body");
  if (given.base64 !== undefined) return Buffer.from(given.base64, "base64");
  return Buffer.from(given.plain_text ?? JSON.stringify(given.json));
}

export const requestTracerOperations = [traceOperation];
