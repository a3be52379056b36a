import type { Declaration, SettingsOf } from "../../declaration.ts";
import { declarations } from "../../declarations.ts";
import type { ConfigOf } from "./setting.ts";

type Settings = SettingsOf<typeof declarations>;

/**
 * Every setting, as the capabilities declare them. Flags, environment variables, file keys, `config print` and
 * docs/reference/configuration.md come from this object.
 */
export const settings = Object.assign({}, ...declarations.map((each) => each.settings)) as Settings;

/** The name of a setting in code, in camelCase. */
export type SettingName = keyof Settings;
/** The effective settings. Those without a default may be undefined. */
export type Config = ConfigOf<Settings>;

/** The first contradiction between settings, as a message for the operator; undefined if there is none. */
export function contradictionIn(config: Config): string | undefined {
  for (const each of declarations as readonly Declaration[]) {
    const fault = each.checkSettings?.(config);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
