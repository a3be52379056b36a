import type { Call } from "../../control/api/operation.ts";
import type { KvNamespace, KvNamespaces } from "./kv.ts";

export const namespacesPath = "/accounts/{account_id}/storage/kv/namespaces";
export const namespacePath = `${namespacesPath}/{namespace_id}`;
export const read = { access: { scope: "account", permission: "workers_kv:read" } } as const;
export const edit = { access: { scope: "account", permission: "workers_kv:edit" } } as const;

/** The namespace of the path. */
export const namespaceOf = async ({
  account,
  params,
  services,
}: Call<unknown, unknown, { kv: KvNamespaces }>): Promise<KvNamespace> =>
  services.kv.getNamespace(account.id, params["namespace_id"]!);
