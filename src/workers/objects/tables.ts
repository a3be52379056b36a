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

/** Restores that objects have asked for: moments are stamps of the log of objects (platform/object-log/stamps.ts). */
export interface ObjectRestoresTable {
  namespace_id: Immutable<string>;
  object_id: Immutable<string>;
  /** When it was asked for: the moment in the bookmark that undoes it. */
  undo: Immutable<string>;
  target: Immutable<string>;
  /** The last moment of the data that it replaced; null before. */
  before: string | null;
  is_done: Flag;
}

/** When to ask objects for their alarms, which are stored in the objects. `due` is never later than the alarm. */
export interface ObjectAlarmsTable {
  namespace_id: Immutable<string>;
  object_id: Immutable<string>;
  /** Milliseconds since 1970. */
  due: number;
  /** Attempts of the alarm that have failed. */
  retries: number;
  /** JSON of ActingOrigin: the object's name, and the limits and the outbound script of its last dispatch. */
  origin: string;
}
