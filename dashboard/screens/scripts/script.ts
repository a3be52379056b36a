/** A script as the API lists it; the fields that the console uses. */
export interface Script {
  id: string;
  handlers: string[];
  tags: string[];
  compatibility_date: string;
  has_assets: boolean;
  modified_on: string;
  created_on: string;
}

export interface Version {
  id: string;
  number: number;
  metadata: { created_on: string; source: string; author_email: string };
  annotations: Record<string, string>;
}

export interface Deployment {
  id: string;
  created_on: string;
  author_email: string;
  annotations: Record<string, string>;
  versions: { version_id: string; percentage: number }[];
}

export interface ScriptSettings {
  bindings: ({ type: string; name: string } & Record<string, unknown>)[];
  compatibility_date: string;
  compatibility_flags: string[];
  limits: Record<string, unknown>;
  tags: string[];
  usage_model: string;
}

/** The path of a script below /client/v4. */
export const scriptPath = (account: string, name: string): string =>
  `/accounts/${account}/workers/scripts/${encodeURIComponent(name)}`;

export const one = "/accounts/{account_id}/workers/scripts/{script_name}";

/** The values of the path of a script's operations. */
export const paramsOf = (account: string, name: string): Readonly<Record<string, string>> => ({
  account_id: account,
  script_name: name,
});

export const shortId = (id: string): string => id.slice(0, 8);
