import type { Setting } from "./setting.ts";
import { backupSettings } from "./settings-backup.ts";
import { hostingSettings } from "./settings-hosting.ts";
import { networkSettings } from "./settings-network.ts";
import { nodeSettings } from "./settings-node.ts";

/**
 * Every setting. Flags, environment variables, file keys, `config print` and docs/reference/configuration.md
 * come from this object.
 */
export const settings = {
  ...nodeSettings,
  ...networkSettings,
  ...hostingSettings,
  ...backupSettings,
} as const satisfies Record<string, Setting>;

/** The name of a setting in code, in camelCase. */
export type SettingName = keyof typeof settings;
type Settings = typeof settings;
type Value<S> = S extends { kind: "count" }
  ? number
  : S extends { kind: "flag" }
    ? boolean
    : S extends { kind: "list" }
      ? readonly string[]
      : S extends { choices: readonly (infer C)[] }
        ? C
        : string;

/** The effective settings. Those without a default may be undefined. */
export type Config = {
  [N in SettingName]: Settings[N] extends { default: unknown }
    ? Value<Settings[N]>
    : Value<Settings[N]> | undefined;
};
