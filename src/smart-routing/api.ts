import { z } from "zod";
import type { Account } from "../accounts/accounts.ts";
import { ApiError } from "../api/errors.ts";
import { operation, type Operation } from "../api/operation.ts";
import type { Actor } from "../tokens/actor.ts";
import { isoTime } from "../util/ids.ts";
import { plans } from "../zones/plans.ts";
import type { Zone } from "../zones/zone.ts";

const SettingSchema = z
  .object({
    id: z.literal("smart_routing"),
    value: z.enum(["on", "off"]),
    editable: z.boolean(),
    modified_on: z.string().meta({ format: "date-time" }),
  })
  .meta({ id: "SmartRoutingSetting" });

/** Why the setting cannot be changed, in words for the caller; undefined when it can. */
function obstacle(zone: Zone, account: Account, actor: Actor): string | undefined {
  if (!plans[zone.plan].smartRouting) return `the plan "${zone.plan}" does not include smart routing`;
  if (!account.hasBilling) return "billing is not configured for the account";
  if (!actor.can("smart_routing:edit", { zoneId: zone.id, accountId: zone.accountId })) {
    return 'the credentials lack "Smart Routing Write" on the zone';
  }
  return undefined;
}

const settingResource = (zone: Zone, account: Account, actor: Actor): z.input<typeof SettingSchema> => ({
  id: "smart_routing",
  value: zone.smartRouting,
  editable: obstacle(zone, account, actor) === undefined,
  // Before the first change it is the zone's own age: the field is always there, and does not drift.
  modified_on: isoTime(zone.smartRoutingModifiedOn ?? zone.createdOn),
});

const getSmartRouting = operation({
  id: "smart_routing_get",
  method: "GET",
  path: "/zones/{zone_id}/edge/smart_routing",
  summary: "Get the zone's smart-routing setting",
  access: { scope: "zone", permission: "smart_routing:read" },
  result: SettingSchema,
  handle: async ({ zone, account, actor }) => settingResource(zone, account, actor),
});

const editSmartRouting = operation({
  id: "smart_routing_edit",
  method: "PATCH",
  path: "/zones/{zone_id}/edge/smart_routing",
  summary: "Switch smart routing on or off for the zone",
  access: { scope: "zone", permission: "smart_routing:edit" },
  body: z.strictObject({ value: z.enum(["on", "off"]) }),
  result: SettingSchema,
  async handle({ body, zone, account, actor, services }) {
    const why = obstacle(zone, account, actor);
    if (why !== undefined)
      throw new ApiError(403, 1015, `The setting smart_routing cannot be changed: ${why}`);
    return settingResource(await services.zones.setSmartRouting(zone, body.value), account, actor);
  },
});

export const smartRoutingOperations: readonly Operation[] = [getSmartRouting, editSmartRouting];
