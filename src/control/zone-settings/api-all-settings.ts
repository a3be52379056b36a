import { z } from "zod";
import { apiErrors } from "../api/errors.ts";
import { operationsFor, type Call } from "../api/operation.ts";
import { validate } from "../api/validation.ts";
import { settingSchemas, type SettingId, type ZoneSettings } from "./zone-settings.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { show } from "../../platform/util/json.ts";
import type { Change, Write } from "../../platform/storage/storage.ts";

/** The bot management of the edge, whose switch is also one of the zone's settings. */
interface BotSetting {
  find(zoneId: string): Promise<{ isEnabled: boolean; modifiedOn: number } | undefined>;
  write(trx: Write, changed: (change: Change) => void, zoneId: string, isEnabled: boolean): Promise<unknown>;
}

/** The services that these operations use. */
interface Services {
  botManagement: BotSetting;
  zoneSettings: ZoneSettings;
}

const { operation } = operationsFor<Services>();

/** Operations on all settings of a zone at once. Each setting also has its own operations. */
const tlsSettings = [
  "ssl",
  "always_use_https",
  "transformations",
  "transformations_allowed_origins",
] as const satisfies SettingId[];
const botManagement = "bot_management";
const onOff = z.enum(["on", "off"]);
const names: readonly string[] = [...tlsSettings, botManagement];

const SettingSchema = z
  .object({
    id: z.string(),
    value: z.string(),
    editable: z.boolean(),
    modified_on: z.string().meta({ format: "date-time" }),
  })
  .meta({ id: "ZoneSetting" });
type Setting = z.input<typeof SettingSchema>;

/** Includes the computed fields that clients send back. */
const ChangeSchema = z.strictObject({
  id: z.string().max(100),
  value: z.unknown(),
  editable: z.boolean().optional(),
  modified_on: z.string().nullish(),
});

async function settingsOf({
  zone,
  services,
}: Pick<Call<0, 0, Services>, "zone" | "services">): Promise<Setting[]> {
  const bots = await services.botManagement.find(zone.id);
  const resource = (id: string, value: string, modifiedOn: number | undefined): Setting => ({
    id,
    value,
    editable: true,
    modified_on: isoTime(modifiedOn ?? zone.createdOn),
  });
  const { zoneSettings } = services;
  return [
    ...tlsSettings.map((id) =>
      resource(id, zoneSettings.value(zone.id, id), zoneSettings.modifiedOn(zone.id, id)),
    ),
    resource(botManagement, bots?.isEnabled === true ? "on" : "off", bots?.modifiedOn),
  ];
}

const path = "/zones/{zone_id}/settings";

/** The operations on the settings of a zone. */
export const zoneSettingsOperations = [
  operation({
    id: "zone_settings_list",
    method: "GET",
    path,
    summary: "List the zone's settings",
    access: { scope: "zone", permission: "zone_settings:read" },
    result: z.array(SettingSchema),
    handle: settingsOf,
  }),
  operation({
    id: "zone_settings_edit",
    method: "PATCH",
    path,
    summary: "Change several of the zone's settings, all or none",
    access: { scope: "zone", permission: "zone_settings:edit" },
    body: z.strictObject({ items: z.array(ChangeSchema).min(1).max(100) }),
    result: z.array(SettingSchema),
    async handle(call) {
      const values = new Map(call.body.items.map((item, index) => checked(item, index)));
      if (values.size < call.body.items.length)
        throw apiErrors.invalid("Expected each setting once in items", "/body/items");
      const { zone, services } = call;
      const bots = values.get(botManagement);
      values.delete(botManagement);
      await services.zoneSettings.setAll(zone.id, values as Map<SettingId, string>, async (trx, changed) => {
        if (bots !== undefined) await services.botManagement.write(trx, changed, zone.id, bots === "on");
      });
      const asked = new Set(call.body.items.map(({ id }) => id));
      return (await settingsOf(call)).filter(({ id }) => asked.has(id));
    },
  }),
];

function checked({ id, value }: z.output<typeof ChangeSchema>, index: number): [id: string, value: string] {
  const known = tlsSettings.find((each) => each === id);
  const schema: z.ZodType<string> | undefined =
    known === undefined ? (id === botManagement ? onOff : undefined) : settingSchemas[known];
  if (schema === undefined)
    throw apiErrors.invalid(
      `Expected one of ${names.join(", ")} for items.${index}.id but received ${show(id)}`,
      `/body/items/${index}/id`,
    );
  return [id, validate(z.object({ value: schema }), { value }, `body/items/${index}`).value];
}
