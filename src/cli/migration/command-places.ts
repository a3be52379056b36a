import { findPlace, type AccountPlace } from "./account/place.ts";
import { Client, type ClientOptions } from "./account/client.ts";
import { MigrationError, printable } from "./failure.ts";
import { groups, type Group } from "./product.ts";

/** The address of a place without a variable for it. */
const baseUrls: Readonly<Record<string, string>> = {
  cloudflare: "https://api.cloudflare.com/client/v4",
  selvedge: "http://127.0.0.1:8787/client/v4",
};
/** The public service allows 1200 calls in five minutes. */
const callsPerSecondDefault = 4;

/** The variables of a place: `cloudflare` has CLOUDFLARE_BASE_URL, …_API_TOKEN, …_ACCOUNT_ID and …_DNS. */
export interface PlaceVariables {
  name: string;
  baseUrl: string;
  token: string;
  accountId: string | undefined;
  dns: string | undefined;
}

export function placeVariables(name: string, environment: NodeJS.ProcessEnv): PlaceVariables {
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name))
    throw new MigrationError(
      `Expected the name of a place, such as cloudflare or selvedge, or a file that ends with .json, but received "${printable(name)}"`,
    );
  const prefix = name.toUpperCase();
  const [baseUrl, token, accountId, dns] = ["BASE_URL", "API_TOKEN", "ACCOUNT_ID", "DNS"].map(
    (each) => environment[`${prefix}_${each}`] || undefined,
  );
  if (token === undefined)
    throw new MigrationError(`Set ${prefix}_API_TOKEN to a token for the place ${name}`);
  const url = baseUrl ?? baseUrls[name];
  if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new MigrationError(`Set ${prefix}_BASE_URL to the base URL of the place ${name}'s API`);
  return { name, baseUrl: url, token, accountId, dns };
}

export const isFile = (place: string): boolean => /\.json$|\//.test(place);

export async function openPlace(
  { baseUrl, token, accountId }: PlaceVariables,
  zones: readonly string[] | undefined,
  options: Omit<ClientOptions, "baseUrl" | "token">,
  mayMiss = false,
): Promise<AccountPlace> {
  return findPlace(new Client({ ...options, baseUrl, token }), accountId, zones, mayMiss);
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
export function rateOf(text: string | undefined, place: string): number {
  if (text === undefined) return place === "selvedge" ? 0 : callsPerSecondDefault;
  const rate = Number(text);
  if (text.trim() !== "" && rate >= 0 && rate <= 10_000) return rate;
  throw new MigrationError(
    `Expected a number of calls per second for --rate but received "${printable(text)}"`,
  );
}

/** Prints a progress line on stderr, apart from the output. */
export const tell = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
