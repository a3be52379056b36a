/** A dispatch namespace as the API shows it; the fields that the console uses. */
export interface Namespace {
  namespace_id: string;
  namespace_name: string;
  script_count: number;
  trusted_workers: boolean;
  created_on: string;
}

export interface Customer {
  script: { id: string; tags: string[]; has_assets: boolean; handlers: string[] };
  created_on: string;
  modified_on: string;
}

export const one = "/accounts/{account_id}/edge/dispatch/namespaces/{namespace_name}";

export const namespacesPath = (account: string): string => `/accounts/${account}/edge/dispatch/namespaces`;

/** The screen of a namespace. */
export const placeOf = (account: string, namespace: string): string =>
  `/${account}/dispatch/${encodeURIComponent(namespace)}`;

/** "gold, -trial" → "gold:yes,trial:no", the filter of the API. */
export const tagFilter = (text: string): string =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "" && each !== "-")
    .map((each) => (each.startsWith("-") ? `${each.slice(1).trim()}:no` : `${each}:yes`))
    .join(",");
