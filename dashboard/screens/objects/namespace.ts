/** A namespace of Durable Objects as the API shows it. */
export interface Namespace {
  id: string;
  name: string;
  /** Empty if the script is gone. */
  script: string;
  class: string;
  use_sqlite: boolean;
}

export interface StoredObject {
  id: string;
  storedBytes: number;
}

export const namespacesPath = (account: string): string =>
  `/accounts/${account}/workers/durable_objects/namespaces`;

/** One object in the paths of openapi.json. */
export const one =
  "/accounts/{account_id}/workers/durable_objects/namespaces/{namespace_id}/objects/{object_id}";
