import { useGet } from "../../core/cache.ts";
import { useAction } from "../../core/action.ts";
import { useRefusal } from "../../core/permissions.ts";
import { useZone } from "../../core/zone.ts";
import { AsCode } from "../../code/as-code.tsx";
import { SelectField, Switch } from "../../parts/form.tsx";

export interface Setting {
  id: string;
  value: string;
  editable: boolean;
  modified_on: string;
}

/** All settings of the zone. */
export const useSettings = () => useGet<Setting[]>(`/zones/${useZone().id}/settings`);

interface ZoneSettingProps {
  setting: Setting | undefined;
  label: string;
  hint: string;
  /** Values to choose from; without them it is on or off. */
  options?: readonly { value: string; label: string }[];
}

/** One setting of the zone, which is saved when it is changed. */
export function ZoneSetting({ setting, label, hint, options }: ZoneSettingProps) {
  const zone = useZone();
  const op = `PATCH /zones/{zone_id}/settings/${setting?.id}`;
  const action = useAction({
    done: `${label} was changed`,
    invalidates: [`/zones/${zone.id}/settings`],
    tellsFailure: true,
  });
  const refused = useRefusal()(op);
  if (setting === undefined) return null;
  const refusal = refused ?? (setting.editable ? undefined : "not editable on this plan");
  const call = (value: string) => ({ op, params: { zone_id: zone.id }, body: { value } });
  const change = (value: string): void => void action.run(call(value));
  return (
    <div class="setting">
      {options === undefined ? (
        <Switch
          label={label}
          hint={hint}
          isOn={setting.value === "on"}
          refusal={refusal}
          onChange={(on) => change(on ? "on" : "off")}
        />
      ) : (
        <SelectField
          label={label}
          hint={refusal === undefined ? hint : `${hint} (${refusal})`}
          value={setting.value}
          options={options}
          isDisabled={refusal !== undefined}
          onChange={change}
        />
      )}
      <AsCode call={call(setting.value)} />
    </div>
  );
}
