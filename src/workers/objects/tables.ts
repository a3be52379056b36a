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

/** When objects have to be asked for their alarms, which are stored in the objects. Never later than the alarm. */
export interface ObjectAlarmsTable {
  namespace_id: Immutable<string>;
  object_id: Immutable<string>;
  /** Milliseconds since 1970. */
  due: number;
  /** Attempts of the alarm that have failed. */
  retries: number;
  /** JSON: the object's name, and what a run of it has from its last dispatch. */
  origin: string;
}
