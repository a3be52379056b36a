import { Option, type Command } from "commander";
import { loadConfig, type LoadedConfig } from "../platform/config/config.ts";
import type { Setting } from "../platform/config/setting.ts";
import { settings, type SettingName } from "../platform/config/settings.ts";

const names = Object.keys(settings) as SettingName[];

/** Adds an option for every setting to a command. */
export function addConfigOptions(command: Command): Command {
  command.option(
    "--config <file>",
    "configuration file (default: SELVEDGE_CONFIG, or ./selvedge.toml if it exists)",
  );
  for (const name of names) {
    const setting: Setting = settings[name];
    const value = setting.kind === "flag" ? "[true|false]" : `<${placeholder(setting)}>`;
    command.addOption(new Option(`--${setting.flag} ${value}`, `${setting.describe} (${setting.env})`));
  }
  return command;
}

const placeholder = (setting: Setting): string =>
  setting.kind === "choice"
    ? setting.choices.join("|")
    : setting.kind === "address"
      ? "address:port"
      : setting.kind;

/** Loads the configuration from a command's options, the environment and the file. */
export function configOf(options: Record<string, unknown>): LoadedConfig {
  const flags = Object.fromEntries(
    names.map((name) => {
      const key = settings[name].flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
      return [name, options[key]];
    }),
  );
  const file = (options["config"] as string | undefined) ?? process.env["SELVEDGE_CONFIG"];
  return loadConfig(flags, process.env, file);
}
