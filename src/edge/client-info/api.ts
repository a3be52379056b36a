import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Zone } from "../../control/zones/zone.ts";
import type { BotManagementRow } from "./store.ts";
import type { BotManagementSetting } from "./bot-management.ts";

/** The services that these operations use. */
interface Services {
  botManagement: BotManagementSetting;
}

const { operation } = operationsFor<Services>();

const SettingSchema = z
  .object({
    id: z.literal("bot_management"),
    value: z.enum(["on", "off"]),
    editable: z.boolean(),
    modified_on: z.string().meta({ format: "date-time" }),
  })
  .meta({ id: "BotManagementSetting", description: "Whether the zone's requests are scored" });

const resource = (zone: Zone, row: BotManagementRow | undefined): z.input<typeof SettingSchema> => ({
  id: "bot_management",
  value: row?.isEnabled === true ? "on" : "off",
  editable: true,
  modified_on: isoTime(row?.modifiedOn ?? zone.createdOn),
});

const path = "/zones/{zone_id}/settings/bot_management";

export const botManagementOperations = [
  operation({
    id: "bot_management_get",
    method: "GET",
    path,
    summary: "Get whether bot management is enabled for the zone",
    access: { scope: "zone", permission: "zone_settings:read" },
    result: SettingSchema,
    handle: async ({ zone, services }) => resource(zone, await services.botManagement.find(zone.id)),
  }),
  operation({
    id: "bot_management_edit",
    method: "PATCH",
    path,
    summary: "Enable or disable bot management for the zone",
    access: { scope: "zone", permission: "zone_settings:edit" },
    body: z.strictObject({ value: z.enum(["on", "off"]) }),
    result: SettingSchema,
    handle: async ({ zone, body, services }) =>
      resource(zone, await services.botManagement.put(zone.id, body.value === "on")),
  }),
];
