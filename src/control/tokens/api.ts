import { z } from "zod";
import type { ApiMessage } from "../api/envelope.ts";
import { apiErrors } from "../api/errors.ts";
import { tokenErrorCodes } from "./api-errors.ts";
import { operationsFor, type Call, type Operation } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime, newId } from "../../platform/util/ids.ts";
import { isNetwork } from "../access/address-set.ts";
import { findPermissionGroup, permissionGroups, type PermissionGroup } from "../access/permissions.ts";
import { parseResource, type Policy, resourcesOf } from "../access/policies.ts";
import type { ApiToken, TokenInput, TokenOwner, Tokens } from "./tokens.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services {
  tokens: Tokens;
}

const { listOperation, operation } = operationsFor<Services>(tokenErrorCodes);

const TimeSchema = z.iso.datetime({ offset: true });
const NetworkSchema = z.string().refine(isNetwork, "an IP address or a CIDR range such as 192.0.2.0/24");
const ConditionSchema = z.strictObject({
  request_ip: z
    .strictObject({
      in: z.array(NetworkSchema).max(100).optional(),
      not_in: z.array(NetworkSchema).max(100).optional(),
    })
    .optional(),
});
const ResourcesSchema = z.record(
  z.string().max(200),
  z.union([z.literal("*"), z.record(z.string().max(200), z.literal("*"))]),
);

const PolicyInputSchema = z.strictObject({
  id: z.string().max(64).optional(),
  effect: z.enum(["allow", "deny"]),
  resources: ResourcesSchema,
  permission_groups: z
    .array(z.object({ id: z.string().max(64).optional(), name: z.string().max(200).optional() }))
    .min(1)
    .max(200),
});

/** Limit on the resources in all policies of one token. */
const resourcesMax = 1000;

const TokenInputSchema = z.strictObject({
  name: z.string().trim().min(1).max(120),
  policies: z.array(PolicyInputSchema).min(1).max(50),
  condition: ConditionSchema.nullish(),
  not_before: TimeSchema.nullish(),
  expires_on: TimeSchema.nullish(),
});
// Clients send the whole token back when they edit it. These fields are computed, and the public API ignores
// them.
const TokenUpdateSchema = TokenInputSchema.extend({
  status: z.enum(["active", "disabled", "expired"]).optional(),
  id: z.string().optional(),
  issued_on: z.string().optional(),
  modified_on: z.string().optional(),
  last_used_on: z.string().nullish(),
});

const TokenSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(["active", "disabled", "expired"]),
    issued_on: z.string(),
    modified_on: z.string(),
    last_used_on: z.string().nullable(),
    not_before: z.string().optional(),
    expires_on: z.string().optional(),
    policies: z.array(
      z.object({
        id: z.string(),
        effect: z.enum(["allow", "deny"]),
        resources: ResourcesSchema,
        permission_groups: z.array(z.object({ id: z.string(), name: z.string() })),
      }),
    ),
    condition: ConditionSchema.optional(),
  })
  .meta({ id: "ApiToken" });
const CreatedTokenSchema = TokenSchema.extend({ value: z.string() }).meta({ id: "CreatedApiToken" });
const VerificationSchema = z.object({
  id: z.string(),
  status: z.enum(["active", "disabled", "expired"]),
  not_before: z.string().optional(),
  expires_on: z.string().optional(),
});
const PermissionGroupSchema = z
  .object({ id: z.string(), name: z.string(), scopes: z.array(z.string()) })
  .meta({ id: "PermissionGroup" });

const times = (token: ApiToken) => ({
  ...(token.notBefore === null ? {} : { not_before: isoTime(token.notBefore) }),
  ...(token.expiresOn === null ? {} : { expires_on: isoTime(token.expiresOn) }),
});
const statusOf = (token: ApiToken) =>
  token.expiresOn !== null && token.expiresOn <= clock.now() ? ("expired" as const) : token.status;

const tokenResource = (token: ApiToken): z.input<typeof TokenSchema> => ({
  id: token.id,
  name: token.name,
  status: statusOf(token),
  issued_on: isoTime(token.issuedOn),
  modified_on: isoTime(token.modifiedOn),
  last_used_on: token.lastUsedOn === null ? null : isoTime(token.lastUsedOn),
  ...times(token),
  policies: token.policies,
  ...(token.condition === null ? {} : { condition: token.condition }),
});

function tokenInput(body: z.output<typeof TokenInputSchema>, messages: ApiMessage[]): TokenInput {
  const notBefore = body.not_before == null ? null : Date.parse(body.not_before);
  const expiresOn = body.expires_on == null ? null : Date.parse(body.expires_on);
  if (notBefore !== null && expiresOn !== null && notBefore >= expiresOn) {
    throw apiErrors.invalid("Expected a time after not_before for expires_on", "/body/expires_on");
  }
  const count = body.policies
    .flatMap(({ resources }) => Object.values(resources))
    .reduce((sum, value) => sum + (typeof value === "string" ? 1 : Object.keys(value).length), 0);
  if (count > resourcesMax)
    throw apiErrors.invalid(
      `Expected at most ${resourcesMax} resources in all policies but received ${count}`,
      "/body/policies",
    );
  return {
    name: body.name,
    policies: body.policies.map((each, index) => policy(each, index, messages)),
    condition: body.condition ?? null,
    notBefore,
    expiresOn,
  };
}

type PolicyInput = z.output<typeof PolicyInputSchema>;

function policy(input: PolicyInput, index: number, messages: ApiMessage[]): Policy {
  checkResources(input, index);
  const groups = input.permission_groups.map(({ id, name }, at) => {
    const group = findPermissionGroup(id, name);
    if (group !== undefined) return group;
    throw apiErrors.invalid(
      `Expected the id of a permission group for policies.${index}.permission_groups.${at} but received "${id ?? name}". See GET /user/tokens/permission_groups`,
      `/body/policies/${index}/permission_groups/${at}`,
    );
  });
  if (input.effect === "allow") checkScopes(input, groups, index, messages);
  return {
    id: newId(),
    effect: input.effect,
    resources: input.resources,
    permission_groups: groups.map(({ id, name }) => ({ id, name })),
  };
}

function checkResources({ resources }: PolicyInput, index: number): void {
  const pointer = `/body/policies/${index}/resources`;
  const refuse = (expected: string, received: string): never => {
    throw apiErrors.invalid(
      `Expected ${expected} for policies.${index}.resources but received "${received}"`,
      pointer,
    );
  };
  if (Object.keys(resources).length === 0)
    throw apiErrors.invalid(`Expected at least one resource for policies.${index}.resources`, pointer);
  for (const [name, value] of Object.entries(resources)) {
    const outer = parseResource(name);
    if (outer === undefined) return refuse('a resource such as "com.cloudflare.api.account.zone.<id>"', name);
    if (typeof value === "string") continue;
    if (outer.kind !== "account") refuse(`"*" for a resource that is not an account`, name);
    const lost = Object.keys(value).find((inner) => parseResource(inner)?.kind !== "zone");
    if (lost !== undefined) refuse(`zones such as "com.cloudflare.api.account.zone.*" in ${name}`, lost);
  }
}

/**
 * A permission applies to one kind of resource. Rejects a policy without any matching resource, and adds a
 * message for groups without one.
 */
function checkScopes(
  { resources }: PolicyInput,
  groups: readonly PermissionGroup[],
  index: number,
  messages: ApiMessage[],
): void {
  const kinds = new Set(
    Object.entries(resources).flatMap(([name, value]) => resourcesOf(name, value).map(({ kind }) => kind)),
  );
  const useless = groups.filter(({ scope }) => !kinds.has(scope));
  if (useless.length === groups.length)
    throw apiErrors.invalid(
      `Expected ${resourceNames[useless[0]!.scope]} for policies.${index}.resources, because "${useless[0]!.name}" applies to nothing else`,
      `/body/policies/${index}/resources`,
    );
  for (const [scope, same] of Map.groupBy(useless, (group) => group.scope))
    messages.push({
      code: 1053,
      message: `policies.${index} grants nothing with ${same.map(({ name }) => `"${name}"`).join(", ")}: add ${resourceNames[scope]} to its resources`,
    });
}

const resourceNames = {
  zone: "com.cloudflare.api.account.zone.<id>, or zones of an account",
  account: "com.cloudflare.api.account.<id>",
  user: "com.cloudflare.api.user.<id>",
} as const;

/** Operations on tokens, either of the caller's user or of an account. */
function tokenOperations(owner: "user" | "account"): Operation<Services>[] {
  const base = owner === "user" ? "/user/tokens" : "/accounts/{account_id}/tokens";
  const read =
    owner === "user"
      ? ({ scope: "user", permission: "user_tokens:read" } as const)
      : ({ scope: "account", permission: "account_tokens:read" } as const);
  const edit =
    owner === "user"
      ? ({ scope: "user", permission: "user_tokens:edit" } as const)
      : ({ scope: "account", permission: "account_tokens:edit" } as const);
  type Any = Pick<Call<unknown, unknown, Services>, "actor" | "account" | "services" | "params">;
  const ownerId = (call: Any): string => (owner === "user" ? call.actor.userId! : call.account.id);
  const ownerOf = (call: Any): TokenOwner => ({ kind: owner, id: ownerId(call) });
  const tokenId = (call: Any): string => call.params["token_id"]!;

  return [
    operation({
      id: `${owner}_token_verify`,
      method: "GET",
      path: `${base}/verify`,
      summary: "Check the token that this call carries",
      access: { scope: "caller" },
      result: VerificationSchema,
      async handle({ actor, services, messages, params }) {
        const id = owner === "user" ? actor.userId : (params["account_id"] ?? null);
        const token =
          id === null || actor.kind === "key" ? undefined : await services.tokens.find(id, actor.id);
        if (token === undefined) throw apiErrors.invalidToken();
        messages.push({ code: 10000, message: "This API ApiToken is valid and active" });
        return { id: token.id, status: statusOf(token), ...times(token) };
      },
    }),
    listOperation({
      id: `${owner}_token_permission_groups`,
      method: "GET",
      path: `${base}/permission_groups`,
      summary: "List the permission groups that tokens can have",
      access: read,
      query: pageQuery({ default: 1000, max: 1000 }).extend({
        name: z.string().max(200).optional(),
        scope: z.string().max(200).optional(),
      }),
      result: PermissionGroupSchema,
      async handle({ query }) {
        const found = permissionGroups.filter(
          (group) =>
            (query.name === undefined || group.name === decodeURIComponent(query.name)) &&
            (query.scope === undefined || group.scopes.includes(decodeURIComponent(query.scope))),
        );
        return paginate(
          found.map(({ id, name, scopes }) => ({ id, name, scopes })),
          query,
        );
      },
    }),
    listOperation({
      id: `${owner}_token_list`,
      method: "GET",
      path: base,
      summary: "List tokens",
      access: read,
      query: pageQuery({ default: 20, max: 50 }).extend({
        direction: z.enum(["asc", "desc"]).default("asc"),
      }),
      result: TokenSchema,
      async handle(call) {
        const { tokens, totalCount } = await call.services.tokens.list(ownerId(call), call.query);
        return {
          items: tokens.map(tokenResource),
          page: call.query.page,
          perPage: call.query.per_page,
          totalCount,
        };
      },
    }),
    operation({
      id: `${owner}_token_create`,
      method: "POST",
      path: base,
      summary: "Create a token. Its value is shown only once",
      access: edit,
      body: TokenInputSchema,
      result: CreatedTokenSchema,
      async handle(call) {
        const input = tokenInput(call.body, call.messages);
        const { token, secret } = await call.services.tokens.create(call.actor, ownerOf(call), input);
        return { ...tokenResource(token), value: secret };
      },
    }),
    operation({
      id: `${owner}_token_get`,
      method: "GET",
      path: `${base}/{token_id}`,
      summary: "Get a token",
      access: read,
      result: TokenSchema,
      handle: async (call) => tokenResource(await call.services.tokens.get(ownerId(call), tokenId(call))),
    }),
    operation({
      id: `${owner}_token_update`,
      method: "PUT",
      path: `${base}/{token_id}`,
      summary: "Replace a token's name, policies, conditions and status",
      access: edit,
      body: TokenUpdateSchema,
      result: TokenSchema,
      async handle(call) {
        const input = tokenInput(call.body, call.messages);
        const { status } = call.body;
        const kept = status === undefined || status === "expired" ? {} : { status };
        const { actor, services } = call;
        return tokenResource(
          await services.tokens.update(actor, ownerOf(call), tokenId(call), { ...input, ...kept }),
        );
      },
    }),
    operation({
      id: `${owner}_token_roll`,
      method: "PUT",
      path: `${base}/{token_id}/value`,
      summary: "Give a token a new value. The old one stops working",
      access: edit,
      body: z.strictObject({}),
      bodyOptional: true,
      result: z.string(),
      handle: async (call) => call.services.tokens.roll(call.actor, ownerOf(call), tokenId(call)),
    }),
    operation({
      id: `${owner}_token_delete`,
      method: "DELETE",
      path: `${base}/{token_id}`,
      summary: "Delete a token",
      access: edit,
      result: z.object({ id: z.string() }),
      async handle(call) {
        const id = tokenId(call);
        await call.services.tokens.delete(call.actor, ownerOf(call), id);
        return { id };
      },
    }),
  ];
}

export const apiTokenOperations = [...tokenOperations("user"), ...tokenOperations("account")];
