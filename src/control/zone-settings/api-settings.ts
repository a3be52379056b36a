import { z } from "zod";
import { operationsFor, type Operation } from "../api/operation.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Zone } from "../zones/zone.ts";
import { settingSchemas, type SettingId, type ZoneSettings } from "./zone-settings.ts";

/** The services that these operations use. */
interface Services {
  zoneSettings: ZoneSettings;
}

const { operation } = operationsFor<Services>();

const describe: Record<Exclude<SettingId, "universal_ssl">, { schema: string; what: string }> = {
  ssl: { schema: "SslSetting", what: "how the edge uses TLS with visitors and origins" },
  always_use_https: { schema: "AlwaysUseHttpsSetting", what: "whether visitors are redirected to https" },
  transformations: {
    schema: "TransformationsSetting",
    what: "whether /cdn-cgi/image/ transforms images: of the zone and its allowed origins (on), or of any origin (open)",
  },
  transformations_allowed_origins: {
    schema: "TransformationsAllowedOriginsSetting",
    what: "hosts outside the zone whose images may be transformed",
  },
};

/** Operations that read and change one setting of a zone, in the form that all zone settings have. */
function settingOperations<S extends keyof typeof describe>(id: S): Operation<Services>[] {
  const { schema, what } = describe[id];
  const ValueSchema: z.ZodType<string> = settingSchemas[id];
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
    // Before the first change this is the time of the zone's creation, so that the field is always present
    // and stable.
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

export const zoneSettingOperations = [
  ...settingOperations("ssl"),
  ...settingOperations("always_use_https"),
  ...settingOperations("transformations"),
  ...settingOperations("transformations_allowed_origins"),
];
