import { findAccount, type MigratedAccount } from "./account/account.ts";
import { Client, type ClientOptions } from "./account/client.ts";
import { MigrationError, printable } from "./failure.ts";
import { groups, type Group } from "./product.ts";
import { printNote } from "../output.ts";

/** The base URL of a profile without a variable for it. */
const baseUrls: Readonly<Record<string, string>> = {
  cloudflare: "https://api.cloudflare.com/client/v4",
  selvedge: "http://127.0.0.1:8787/client/v4",
};
/** The public service allows 1200 calls in five minutes. */
const callsPerSecondDefault = 4;

/**
 * How to reach an account, from environment variables that begin with the profile's name: CLOUDFLARE_BASE_URL,
 * …_API_TOKEN, …_ACCOUNT_ID and …_DNS.
 */
export interface Profile {
  name: string;
  baseUrl: string;
  token: string;
  accountId: string | undefined;
  dns: string | undefined;
}

export function profileOf(name: string, environment: NodeJS.ProcessEnv): Profile {
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name))
    throw new MigrationError(
      `Expected the name of a profile, such as cloudflare or selvedge, or a file that ends with .json, but received "${printable(name)}"`,
    );
  const prefix = name.toUpperCase();
  const [baseUrl, token, accountId, dns] = ["BASE_URL", "API_TOKEN", "ACCOUNT_ID", "DNS"].map(
    (each) => environment[`${prefix}_${each}`] || undefined,
  );
  if (token === undefined)
    throw new MigrationError(`Set ${prefix}_API_TOKEN to a token for the profile ${name}`);
  const url = baseUrl ?? baseUrls[name];
  if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new MigrationError(`Set ${prefix}_BASE_URL to the base URL of the profile ${name}'s API`);
  return { name, baseUrl: url, token, accountId, dns };
}

export const isFile = (name: string): boolean => /\.json$|\//.test(name);

export async function openAccount(
  { baseUrl, token, accountId }: Profile,
  zones: readonly string[] | undefined,
  options: Omit<ClientOptions, "baseUrl" | "token">,
  mayMiss = false,
): Promise<MigratedAccount> {
  return findAccount(new Client({ ...options, baseUrl, token }), accountId, zones, mayMiss);
}

/** The groups of `--include`; all of them without it. Zones are always included. */
export function groupsOf(list: string | undefined): Group[] {
  if (list === undefined) return [...groups];
  const names = list.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !groups.some((group) => group === name));
  if (unknown !== undefined)
    throw new MigrationError(
      `Expected some of ${groups.join(",")} for --include but received "${printable(unknown)}"`,
    );
  return groups.filter((group) => group === "zones" || names.includes(group));
}

/** Calls per second; 0 means no limit. The default is no limit for selvedge, and the public service's limit elsewhere. */
export function rateOf(text: string | undefined, profile: string): number {
  if (text === undefined) return profile === "selvedge" ? 0 : callsPerSecondDefault;
  const rate = Number(text);
  if (text.trim() !== "" && rate >= 0 && rate <= 10_000) return rate;
  throw new MigrationError(
    `Expected a number of calls per second for --rate but received "${printable(text)}"`,
  );
}

/** Prints a progress line on stderr, apart from the output. */
export const printProgress = printNote;
