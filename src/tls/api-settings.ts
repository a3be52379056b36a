import { z } from "zod";
import { operation, type Operation } from "../api/operation.ts";
import { isoTime } from "../util/ids.ts";
import type { Zone } from "../zones/zone.ts";
import { settingValues, type ZoneSettings } from "./zone-settings.ts";

const describe: Record<"ssl" | "always_use_https", { schema: string; what: string }> = {
  ssl: { schema: "SslSetting", what: "how visitors and origins are spoken to over TLS" },
  always_use_https: { schema: "AlwaysUseHttpsSetting", what: "whether visitors are sent to https" },
};

/** Reading and changing one setting of a zone, in the form that all settings of zones have. */
function settingOperations<S extends keyof typeof describe>(id: S): Operation[] {
  const { schema, what } = describe[id];
  const ValueSchema = z.enum(settingValues[id]);
  const SettingSchema = z
    .object({
      id: z.literal(id as string),
      value: ValueSchema,
      editable: z.boolean(),
      modified_on: z.string().meta({ format: "date-time" }),
    })
    .meta({ id: schema });
  const resource = (zone: Zone, settings: ZoneSettings): z.input<typeof SettingSchema> => ({
    id,
    value: settings.value(zone.id, id) as never,
    editable: true,
    // Before the first change it is the zone's own age: the field is always there, and does not drift.
    modified_on: isoTime(settings.modifiedOn(zone.id, id) ?? zone.createdOn),
  });
  const path = `/zones/{zone_id}/settings/${id}`;
  return [
    operation({
      id: `zone_setting_${id}_get`,
      method: "GET",
      path,
      summary: `Get the zone's setting ${id}: ${what}`,
      access: { scope: "zone", permission: "zone_settings:read" },
      result: SettingSchema,
      handle: async ({ zone, services }) => resource(zone, services.zoneSettings),
    }),
    operation({
      id: `zone_setting_${id}_edit`,
      method: "PATCH",
      path,
      summary: `Change the zone's setting ${id}`,
      access: { scope: "zone", permission: "zone_settings:edit" },
      body: z.strictObject({ value: ValueSchema, id: z.literal(id as string).optional() }),
      result: SettingSchema,
      async handle({ zone, body, services }) {
        await services.zoneSettings.set(zone.id, id, (body as { value: never }).value);
        return resource(zone, services.zoneSettings);
      },
    }),
  ];
}

export const zoneSettingOperations: readonly Operation[] = [
  ...settingOperations("ssl"),
  ...settingOperations("always_use_https"),
];
