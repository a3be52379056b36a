import { existsSync, readFileSync } from "node:fs";
import { isIP, isIPv6 } from "node:net";
import { parse as parseToml } from "smol-toml";
import { show } from "../util/json.ts";
import { suggest } from "../util/suggest.ts";
import { isHostName } from "./forms.ts";
import type { Setting } from "./setting.ts";
import { contradictionIn, settings, type Config, type SettingName } from "./settings.ts";

export type Origin = "flag" | "environment" | "file" | "default";
/** The effective settings, each with the source of its value. */
export interface LoadedConfig {
  config: Config;
  origins: Record<SettingName, Origin>;
}

/** An invalid setting. The message tells the operator how to fix it. */
export class ConfigError extends Error {}

export const defaultConfigFile = "selvedge.toml";
const names = Object.keys(settings) as SettingName[];

/**
 * Loads the configuration: flags override the environment, which overrides the file, which overrides
 * defaults. `flags` are keyed by setting name. Throws ConfigError.
 */
export function loadConfig(
  flags: Partial<Record<SettingName, unknown>>,
  environment: NodeJS.ProcessEnv,
  file: string | undefined,
): LoadedConfig {
  refuseUnknownVariables(environment);
  const fromFile = readConfigFile(file);
  const config: Record<string, unknown> = {};
  const origins = {} as Record<SettingName, Origin>;
  for (const name of names) {
    const setting: Setting = settings[name];
    const sources: [Origin, unknown, string][] = [
      ["flag", flags[name], `--${setting.flag}`],
      ["environment", given(environment, setting.env), setting.env],
      ["environment", given(environment, setting.alsoEnv), setting.alsoEnv ?? ""],
      ["file", fromFile[setting.flag], `${setting.flag} in the configuration file`],
    ];
    const found = sources.find(([, value]) => value !== undefined);
    config[name] = found === undefined ? setting.default : parseValue(setting, found[1], found[2]);
    origins[name] = found?.[0] ?? "default";
  }
  const fault = contradictionIn(config as Config);
  if (fault !== undefined) throw new ConfigError(fault);
  return { config: config as Config, origins };
}

/** An empty variable counts as absent. */
const given = (environment: NodeJS.ProcessEnv, name: string | undefined): string | undefined =>
  (name === undefined ? undefined : environment[name]) || undefined;

function readConfigFile(file: string | undefined): Record<string, unknown> {
  const path = file ?? defaultConfigFile;
  if (file === undefined && !existsSync(path)) return {};
  let values: Record<string, unknown>;
  try {
    values = parseToml(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ConfigError(`The configuration file ${path} cannot be read: ${(error as Error).message}`);
  }
  const known = names.map((name) => settings[name].flag);
  for (const key of Object.keys(values)) {
    if (known.some((flag) => flag === key)) continue;
    throw new ConfigError(`Unknown key "${key}" in ${path}${hint(key, known)}`);
  }
  return values;
}

/** The passphrase is no setting, because settings can be arguments, which other users of the machine see. */
const otherVariables = [
  "SELVEDGE_CONFIG",
  "SELVEDGE_BACKUP_PASSPHRASE",
  // For the commands that call an API: import, apply, diff and export.
  "SELVEDGE_BASE_URL",
  "SELVEDGE_ACCOUNT_ID",
  "SELVEDGE_DNS",
];
/** Variables that Kubernetes injects into the pods of a namespace with a Service named "selvedge". */
const serviceVariable =
  /^SELVEDGE_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

function refuseUnknownVariables(environment: NodeJS.ProcessEnv): void {
  const known: string[] = [...names.map((name) => settings[name].env), ...otherVariables];
  for (const key of Object.keys(environment)) {
    if (!key.startsWith("SELVEDGE_") || known.includes(key) || serviceVariable.test(key)) continue;
    throw new ConfigError(`Unknown setting ${key} in the environment${hint(key, known)}`);
  }
}

const hint = (key: string, known: readonly string[]): string => {
  const meant = suggest(key, known);
  return meant === undefined ? "" : `. Did you mean ${meant}?`;
};

function parseValue(setting: Setting, value: unknown, source: string): unknown {
  const wrong = (expected: string, received = value): ConfigError =>
    new ConfigError(
      `Expected ${expected} for ${source} but received ${setting.secret ? "another value" : show(received)}`,
    );
  switch (setting.kind) {
    case "text":
      if (typeof value !== "string" || value === "") throw wrong(setting.form?.expected ?? "text");
      if (setting.form?.accepts(value) === false) throw wrong(setting.form.expected);
      return value;
    case "address":
      if (typeof value !== "string" || parseAddress(value) === undefined)
        throw wrong("ADDRESS:PORT, such as 127.0.0.1:8787");
      return value;
    case "count": {
      const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
      if (
        typeof number === "number" &&
        Number.isInteger(number) &&
        number >= setting.min &&
        number <= setting.max
      )
        return number;
      throw wrong(`a whole number from ${setting.min} to ${setting.max}`);
    }
    case "flag":
      if (value === true || value === "true" || value === "1") return true;
      if (value === false || value === "false" || value === "0") return false;
      throw wrong("true or false");
    case "choice":
      if (typeof value === "string" && setting.choices.includes(value)) return value;
      throw wrong(`one of ${setting.choices.join(", ")}`);
    case "list": {
      const items = typeof value === "string" ? value.split(",").map((item) => item.trim()) : value;
      if (!Array.isArray(items) || !items.every((item) => typeof item === "string" && item !== ""))
        throw wrong("a comma-separated list");
      const wrongItem = (items as string[]).find((item) => setting.form?.accepts(item) === false);
      if (wrongItem !== undefined) throw wrong(setting.form!.expected, wrongItem);
      return items;
    }
  }
}

/** Parses "127.0.0.1:8787" or "[::1]:8787"; undefined if the text has another form. */
export function parseAddress(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([\da-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  const host = match[1] ?? match[2]!;
  return (match[1] === undefined ? isHostName(host) : isIPv6(host)) ? { host, port } : undefined;
}

/** Whether an address such as "127.0.0.1:8787" is reachable on this machine only. */
export function isLoopback(address: string): boolean {
  const host = parseAddress(address)?.host ?? "";
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** The rows of `config print`, with secrets masked. */
export function describeConfig({
  config,
  origins,
}: LoadedConfig): { name: string; value: unknown; origin: Origin; secret: boolean }[] {
  return names.map((name) => {
    const setting: Setting = settings[name];
    const value = config[name];
    const isMasked = setting.secret === true && value !== undefined;
    return {
      name: setting.flag,
      value: isMasked ? "********" : (value ?? null),
      origin: origins[name],
      secret: setting.secret === true,
    };
  });
}
