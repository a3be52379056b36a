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

export const one = "/accounts/{account_id}/workers/scripts/{script_name}";

/** A script of the account or of a customer: its operations are the same, at another path. */
export interface ScriptPlace {
  name: string;
  /** The path of its operations as in openapi.json, and the values of the path's parameters. */
  one: string;
  params: Readonly<Record<string, string>>;
  /** Its path below /client/v4. */
  path: string;
  /** The list that it is in. */
  list: string;
  /** The path of its code. Only scripts of the account have versions. */
  code: string;
}

export function accountScript(account: string, name: string): ScriptPlace {
  const list = `/accounts/${account}/workers/scripts`;
  const path = `${list}/${encodeURIComponent(name)}`;
  const params = { account_id: account, script_name: name };
  return { name, one, params, path, list, code: `${path}/content/v2` };
}

export function customerScript(account: string, namespace: string, name: string): ScriptPlace {
  const list = `/accounts/${account}/edge/dispatch/namespaces/${encodeURIComponent(namespace)}/scripts`;
  const path = `${list}/${encodeURIComponent(name)}`;
  return {
    name,
    one: "/accounts/{account_id}/edge/dispatch/namespaces/{namespace_name}/scripts/{script_name}",
    params: { account_id: account, namespace_name: namespace, script_name: name },
    path,
    list,
    code: `${path}/content`,
  };
}

export const shortId = (id: string): string => id.slice(0, 8);
