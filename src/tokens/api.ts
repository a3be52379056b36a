import { isIP } from "node:net";
import { z } from "zod";
import { ApiError, apiErrors } from "../api/errors.ts";
import { listOperation, operation, type Call, type Operation } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime, newId } from "../util/ids.ts";
import { findPermissionGroup, permissionGroups, type PermissionScope } from "./permissions.ts";
import { parseResource, PolicySet, type Policy, type Target } from "./policies.ts";
import type { Token, TokenInput } from "./tokens.ts";

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

const TokenInputSchema = z.strictObject({
  name: z.string().trim().min(1).max(120),
  policies: z.array(PolicyInputSchema).min(1).max(50),
  condition: ConditionSchema.nullish(),
  not_before: TimeSchema.nullish(),
  expires_on: TimeSchema.nullish(),
});
// A client that edits a token sends back what it has read; these fields are computed, and ignored by the public API.
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

function isNetwork(text: string): boolean {
  const [address = "", length, ...rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (family === 4 ? 32 : 128));
}

const times = (token: Token) => ({
  ...(token.notBefore === null ? {} : { not_before: isoTime(token.notBefore) }),
  ...(token.expiresOn === null ? {} : { expires_on: isoTime(token.expiresOn) }),
});
const statusOf = (token: Token) =>
  token.expiresOn !== null && token.expiresOn <= Date.now() ? ("expired" as const) : token.status;

const tokenResource = (token: Token): z.input<typeof TokenSchema> => ({
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

function tokenInput(body: z.output<typeof TokenInputSchema>): TokenInput {
  const notBefore = body.not_before == null ? null : Date.parse(body.not_before);
  const expiresOn = body.expires_on == null ? null : Date.parse(body.expires_on);
  if (notBefore !== null && expiresOn !== null && notBefore >= expiresOn) {
    throw apiErrors.invalid("Expected a time after not_before for expires_on", "/body/expires_on");
  }
  return {
    name: body.name,
    policies: body.policies.map(policy),
    condition: body.condition ?? null,
    notBefore,
    expiresOn,
  };
}

function policy(input: z.output<typeof PolicyInputSchema>, index: number): Policy {
  const pointer = `/body/policies/${index}`;
  const names = Object.keys(input.resources);
  if (names.length === 0)
    throw apiErrors.invalid(`Expected at least one resource for policies.${index}.resources`, pointer);
  for (const [name, value] of Object.entries(input.resources)) {
    for (const resource of [name, ...(typeof value === "string" ? [] : Object.keys(value))]) {
      if (parseResource(resource) !== undefined) continue;
      throw apiErrors.invalid(
        `Expected a resource such as "com.cloudflare.api.account.zone.<id>" for policies.${index}.resources but received "${resource}"`,
        `${pointer}/resources`,
      );
    }
  }
  const groups = input.permission_groups.map(({ id, name }, at) => {
    const group = findPermissionGroup(id, name);
    if (group !== undefined) return { id: group.id, name: group.name };
    throw apiErrors.invalid(
      `Expected the id of a permission group for policies.${index}.permission_groups.${at} but received "${id ?? name}". See GET /user/tokens/permission_groups`,
      `${pointer}/permission_groups/${at}`,
    );
  });
  return { id: newId(), effect: input.effect, resources: input.resources, permission_groups: groups };
}

/** A token must not make a token that may do more than itself. */
function refuseEscalation(
  call: Pick<Call<unknown, unknown>, "actor" | "services">,
  policies: readonly Policy[],
): void {
  if (call.actor.kind === "key") return;
  const wanted = new PolicySet(policies);
  const targets: Target[] = [
    ...call.services.accounts.list().map((account) => ({ accountId: account.id })),
    ...call.services.accounts.list().map((account) => ({ accountId: account.id, zoneId: "any" })),
    ...call.services.zones.list().map((zone) => ({ accountId: zone.accountId, zoneId: zone.id })),
    ...(call.actor.userId === null ? [] : [{ userId: call.actor.userId }]),
  ];
  const applies = (scope: PermissionScope, target: Target): boolean =>
    scope === "zone"
      ? target.zoneId !== undefined
      : scope === "account"
        ? target.accountId !== undefined && target.zoneId === undefined
        : target.userId !== undefined;
  for (const group of permissionGroups) {
    for (const target of targets) {
      if (!applies(group.scope, target) || !wanted.allows(group.key, target)) continue;
      const reaches = target.accountId === undefined || call.actor.belongsTo(target.accountId);
      if (reaches && !call.actor.can(group.key, target)) {
        throw new ApiError(
          403,
          1052,
          `The new token would have "${group.name}", which the calling token lacks`,
        );
      }
    }
  }
}

/** The same operations for the tokens of the caller's user and for those of an account. */
function tokenOperations(owner: "user" | "account"): Operation[] {
  const base = owner === "user" ? "/user/tokens" : "/accounts/{account_id}/tokens";
  const read =
    owner === "user"
      ? ({ scope: "user", permission: "user_tokens:read" } as const)
      : ({ scope: "account", permission: "account_tokens:read" } as const);
  const edit =
    owner === "user"
      ? ({ scope: "user", permission: "user_tokens:edit" } as const)
      : ({ scope: "account", permission: "account_tokens:edit" } as const);
  type Any = Pick<Call<unknown, unknown>, "actor" | "account" | "services" | "params">;
  const ownerId = (call: Any): string => (owner === "user" ? call.actor.userId! : call.account.id);
  const find = async (call: Any): Promise<Token> => {
    const token = await call.services.tokens.find(ownerId(call), call.params["token_id"]!);
    if (token === undefined) throw new ApiError(404, 1003, `No token has the id ${call.params["token_id"]}`);
    return token;
  };

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
        messages.push({ code: 10000, message: "This API Token is valid and active" });
        return { id: token.id, status: statusOf(token), ...times(token) };
      },
    }),
    listOperation({
      id: `${owner}_token_permission_groups`,
      method: "GET",
      path: `${base}/permission_groups`,
      summary: "List what tokens can be allowed to do",
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
      summary: "Create a token; its value is shown this once",
      access: edit,
      body: TokenInputSchema,
      result: CreatedTokenSchema,
      async handle(call) {
        const input = tokenInput(call.body);
        refuseEscalation(call, input.policies);
        const { token, secret } = await call.services.tokens.create(
          { kind: owner, id: ownerId(call) },
          input,
        );
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
      handle: async (call) => tokenResource(await find(call)),
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
        const token = await find(call);
        const input = tokenInput(call.body);
        refuseEscalation(call, input.policies);
        const { status } = call.body;
        const kept = status === undefined || status === "expired" ? {} : { status };
        return tokenResource(await call.services.tokens.update(token, { ...input, ...kept }));
      },
    }),
    operation({
      id: `${owner}_token_roll`,
      method: "PUT",
      path: `${base}/{token_id}/value`,
      summary: "Give a token a new value; the old one stops working",
      access: edit,
      body: z.strictObject({}),
      bodyOptional: true,
      result: z.string(),
      handle: async (call) => call.services.tokens.roll(await find(call)),
    }),
    operation({
      id: `${owner}_token_delete`,
      method: "DELETE",
      path: `${base}/{token_id}`,
      summary: "Delete a token",
      access: edit,
      result: z.object({ id: z.string() }),
      async handle(call) {
        const token = await find(call);
        await call.services.tokens.delete(token);
        return { id: token.id };
      },
    }),
  ];
}

export const apiTokenOperations: readonly Operation[] = [
  ...tokenOperations("user"),
  ...tokenOperations("account"),
];
