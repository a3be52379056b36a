import type { Flag, Immutable } from "../../platform/storage/columns.ts";

/** Namespaces of Durable Objects. `script_id` is null for a class of the platform itself. */
export interface ObjectNamespacesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  script_id: string | null;
  class_name: string;
  sqlite: Immutable<Flag>;
  created_on: Immutable<number>;
}
