import { z } from "zod";
import { ApiError, apiErrors } from "../../api/errors.ts";
import { operationsFor, type Call } from "../../api/operation.ts";
import { pageQuery, paginate } from "../../api/pagination.ts";
import type { Account, Accounts } from "../../accounts/accounts.ts";
import type { Actor } from "../../access/actor.ts";
import { permissionGroups } from "../../access/permissions.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import { zoneMatcher } from "../filter.ts";
import { findPlan, planResource, plans } from "../plans.ts";
import { planNames } from "../../../platform/config/plan-names.ts";
import { zoneErrors } from "../errors.ts";
import { zoneStatuses, zoneTypes, type Zone } from "../zone.ts";
import type { ZoneEdit, Zones } from "../zones.ts";
import { zoneErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  accounts: Accounts;
  zones: Zones;
}

const { listOperation, operation } = operationsFor<Services>(zoneErrorCodes);

const TimeSchema = z.string().meta({ format: "date-time" });

export const ZoneSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(zoneStatuses),
    paused: z.boolean(),
    type: z.enum(zoneTypes),
    development_mode: z.int(),
    name_servers: z.array(z.string()),
    vanity_name_servers: z.array(z.string()),
    original_name_servers: z.array(z.string()).nullable(),
    original_registrar: z.string().nullable(),
    original_dnshost: z.string().nullable(),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    activated_on: TimeSchema.nullable(),
    account: z.object({ id: z.string(), name: z.string() }),
    owner: z.object({ id: z.string().nullable(), type: z.string(), name: z.string().nullable() }),
    plan: z.object({
      id: z.string(),
      name: z.string(),
      price: z.number(),
      currency: z.string(),
      frequency: z.string(),
      is_subscribed: z.boolean(),
      can_subscribe: z.boolean(),
      legacy_id: z.string(),
      legacy_discount: z.boolean(),
      externally_managed: z.boolean(),
    }),
    meta: z.object({
      step: z.int(),
      custom_certificate_quota: z.int(),
      page_rule_quota: z.int(),
      phishing_detected: z.boolean(),
      cdn_only: z.boolean(),
      dns_only: z.boolean(),
      foundation_dns: z.boolean(),
    }),
    permissions: z.array(z.string()),
    tenant: z.object({ id: z.string().nullable(), name: z.string().nullable() }),
    tenant_unit: z.object({ id: z.string().nullable() }),
    verification_key: z.string().optional(),
    cname_suffix: z.string().optional(),
  })
  .meta({ id: "Zone", description: "A domain that this installation serves" });

const DeletedSchema = z.object({ id: z.string() });
const cnameSuffix = "cdn.cloudflare.net";

function zoneResource(
  zone: Zone,
  account: Account | undefined,
  { actor, services }: Pick<Call<unknown, unknown, Services>, "actor" | "services">,
): z.input<typeof ZoneSchema> {
  const target = { zoneId: zone.id, accountId: zone.accountId };
  const { zones } = services;
  // A zone inside another account's zone shows its key too, because publishing the key activates it.
  const key = zone.verificationKey ?? (zones.isContested(zone) ? zones.verificationKey(zone) : null);
  const permissions = (["zone:read", "zone:edit", "dns_records:read", "dns_records:edit"] as const).filter(
    (key) => actor.can(key, target),
  );
  return {
    id: zone.id,
    name: zone.name,
    status: zone.status,
    paused: zone.paused,
    type: zone.type,
    development_mode: 0,
    name_servers: zone.nameServers,
    vanity_name_servers: zone.vanityNameServers,
    original_name_servers: null,
    original_registrar: null,
    original_dnshost: null,
    created_on: isoTime(zone.createdOn),
    modified_on: isoTime(zone.modifiedOn),
    activated_on: zone.activatedOn === null ? null : isoTime(zone.activatedOn),
    account: { id: zone.accountId, name: account?.name ?? "" },
    owner: { id: zone.accountId, type: "organization", name: account?.name ?? null },
    plan: planResource(zone.plan),
    meta: {
      step: 2,
      custom_certificate_quota: 1,
      page_rule_quota: 0,
      phishing_detected: false,
      cdn_only: false,
      dns_only: false,
      foundation_dns: false,
    },
    permissions: permissions.map((key) => `#${key}`),
    tenant: { id: null, name: null },
    tenant_unit: { id: null },
    ...(key === null ? {} : { verification_key: key }),
    ...(zone.verificationKey === null ? {} : { cname_suffix: cnameSuffix }),
  };
}

const ZoneListQuery = pageQuery({ default: 20, min: 1, max: 1000 }).extend({
  name: z.string().max(300).optional(),
  status: z.enum(zoneStatuses).optional(),
  type: z.union([z.enum(zoneTypes), z.array(z.enum(zoneTypes)).max(zoneTypes.length)]).optional(),
  "account.id": z.string().max(32).optional(),
  "account.name": z.string().max(300).optional(),
  order: z.enum(["name", "status", "account.id", "account.name", "plan.id"]).default("name"),
  direction: z.enum(["asc", "desc"]).default("asc"),
  match: z.enum(["any", "all"]).default("all"),
});

const listZones = listOperation({
  id: "zone_list",
  method: "GET",
  path: "/zones",
  summary: "List the zones on which the caller has any permission",
  access: { scope: "caller" },
  query: ZoneListQuery,
  result: ZoneSchema,
  async handle(call) {
    const { query, actor, services } = call;
    const matches = zoneMatcher(query, services.accounts);
    const account = (zone: Zone) => services.accounts.find(zone.accountId);
    const visible = services.zones.list().filter((zone) => matches(zone) && isListedFor(actor, zone));
    const key = {
      name: (zone: Zone) => zone.name,
      status: (zone: Zone) => zone.status,
      "account.id": (zone: Zone) => zone.accountId,
      "account.name": (zone: Zone) => account(zone)?.name ?? "",
      "plan.id": (zone: Zone) => planResource(zone.plan).id,
    }[query.order];
    const sign = query.direction === "asc" ? 1 : -1;
    visible.sort((a, b) => sign * compare(key(a), key(b)) || compare(a.name, b.name));
    const page = paginate(visible, query);
    return { ...page, items: page.items.map((zone) => zoneResource(zone, account(zone), call)) };
  },
});

/**
 * Any permission on a zone lists it, as in the public API: clients with a token for DNS records find the zone
 * by name.
 */
const isListedFor = (actor: Actor, { id: zoneId, accountId }: Zone): boolean =>
  permissionGroups.some(({ key, scope }) => scope === "zone" && actor.can(key, { zoneId, accountId }));

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const createZone = operation({
  id: "zone_create",
  method: "POST",
  path: "/zones",
  summary: "Create a zone",
  access: { scope: "caller" },
  body: z.strictObject({
    account: z.strictObject({ id: z.string().length(32).optional(), name: z.string().optional() }).optional(),
    name: z.string().min(1).max(253),
    type: z.enum(zoneTypes).default("full"),
    jump_start: z.boolean().optional(),
  }),
  result: ZoneSchema,
  async handle(call) {
    const { body, actor, services } = call;
    const accountId = body.account?.id ?? onlyAccount(actor, services.accounts.list());
    const account = services.accounts.find(accountId);
    if (account === undefined || !actor.can("zone:edit", { zoneId: "*", accountId })) {
      throw apiErrors.unauthorized(`"Zone Write" on all zones of the account ${accountId}`);
    }
    const zone = await services.zones.create({ accountId, name: body.name, type: body.type });
    if (body.jump_start === true)
      call.messages.push({
        code: 1062,
        message: "jump_start imported no records, because this platform does not scan other name servers",
      });
    return zoneResource(zone, account, call);
  },
});

/** The only account of a caller who names none. Throws if the caller has several. */
function onlyAccount(actor: Actor, accounts: readonly Account[]): string {
  const reachable = accounts.filter((account) => actor.belongsTo(account.id));
  if (reachable.length === 1) return reachable[0]!.id;
  throw apiErrors.invalid(
    `Expected the id of one of the caller's ${reachable.length} accounts for account.id but received nothing`,
    "/body/account/id",
  );
}

const getZone = operation({
  id: "zone_get",
  method: "GET",
  path: "/zones/{zone_id}",
  summary: "Get a zone",
  access: { scope: "zone", permission: "zone:read" },
  result: ZoneSchema,
  handle: async (call) => zoneResource(call.zone, call.account, call),
});

const editZone = operation({
  id: "zone_edit",
  method: "PATCH",
  path: "/zones/{zone_id}",
  summary: "Change one property of a zone",
  access: { scope: "zone", permission: "zone:edit" },
  body: z.strictObject({
    paused: z.boolean().optional(),
    type: z.enum(zoneTypes).optional(),
    plan: z.object({ id: z.string().max(64) }).optional(),
    vanity_name_servers: z.array(z.string().max(253)).max(10).optional(),
  }),
  result: ZoneSchema,
  async handle(call) {
    const { body, zone, account, services } = call;
    const given = Object.keys(body);
    if (given.length > 1) throw zoneErrors.oneChange(given);
    const edited = given.length === 0 ? zone : await services.zones.edit(zone, zoneEdit(body, zone));
    return zoneResource(edited, account, call);
  },
});

function zoneEdit(
  body: {
    paused?: boolean | undefined;
    type?: Zone["type"] | undefined;
    plan?: { id: string } | undefined;
    vanity_name_servers?: string[] | undefined;
  },
  zone: Zone,
): ZoneEdit {
  if (body.paused !== undefined) return { paused: body.paused };
  if (body.type !== undefined) return { type: body.type };
  if (body.plan !== undefined) {
    const plan = findPlan(body.plan.id);
    if (plan !== undefined) return { plan };
    throw apiErrors.invalid(
      `Expected one of ${planNames.join(", ")}, or the id of one of these plans, for plan.id but received "${body.plan.id}"`,
      "/body/plan/id",
    );
  }
  const names = (body.vanity_name_servers ?? []).map((name) => name.toLowerCase());
  if (plans[zone.plan].price < plans.business.price && zone.plan !== "enterprise") {
    throw new ApiError(403, 1117, "Vanity name servers require the business or enterprise plan");
  }
  if (names.some((name) => !name.endsWith(`.${zone.name}`))) throw zoneErrors.noNameServers();
  return { vanityNameServers: names };
}

const deleteZone = operation({
  id: "zone_delete",
  method: "DELETE",
  path: "/zones/{zone_id}",
  summary: "Delete a zone with everything in it",
  access: { scope: "zone", permission: "zone:edit" },
  result: DeletedSchema,
  async handle({ zone, services }) {
    await services.zones.delete(zone);
    return { id: zone.id };
  },
});

const checkActivation = operation({
  id: "zone_activation_check",
  method: "PUT",
  path: "/zones/{zone_id}/activation_check",
  summary: "Check a pending zone for activation now",
  access: { scope: "zone", permission: "zone:edit" },
  result: DeletedSchema,
  async handle({ zone, services }) {
    await services.zones.checkActivation(zone);
    return { id: zone.id };
  },
});

export const zoneOperations = [listZones, createZone, getZone, editZone, deleteZone, checkActivation];
