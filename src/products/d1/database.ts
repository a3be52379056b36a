import { idFromName } from "../../workers/objects/ids.ts";

/** A database of an account. Its data is in a Durable Object of the platform. */
export interface D1Database {
  id: string;
  accountId: string;
  name: string;
  /** The wanted and the required location. They are stored without effect, because there is only one location. */
  locationHint: string | null;
  jurisdiction: string | null;
  /** Stored without effect: there are no replicas, so every query reads the newest state. */
  readReplication: "auto" | "disabled";
  createdOn: number;
}

export const databaseLimits = {
  databasesOfAccount: 50_000,
  nameMax: 64,
  /** Size of the SQL text and values of a call. */
  callBytesMax: 32 * 1024 * 1024,
  /** Size of a response's rows as JSON (see worker/run-statements.ts). */
  answerBytesMax: 128 * 1024 * 1024,
  importBytesMax: 5 * 1024 ** 3,
  cpuMs: 30_000,
};

/** The object that holds the data. */
export const objectOf = (database: Pick<D1Database, "id">): { namespace: string; id: string } => {
  const namespace = namespaceOf(database);
  return { namespace, id: idFromName(namespace, "database") };
};

/** The namespace of that object. */
export const namespaceOf = ({ id }: Pick<D1Database, "id">): string => id.replaceAll("-", "");

/**
 * The state of a database after a number of writes, in the public form. Later states are greater as text.
 * @see https://developers.cloudflare.com/d1/reference/time-travel/
 */
export function bookmarkOf(database: Pick<D1Database, "id">, writes: number): string {
  const digits = writes.toString(16).padStart(16, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-00000000-${namespaceOf(database)}`;
}
