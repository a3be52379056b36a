import { idFromName } from "../../workers/objects/ids.ts";

/** A database of an account. Its data is in an object of the platform. */
export interface Database {
  id: string;
  accountId: string;
  name: string;
  /** The wanted and the required location. There is one location here, so both are only kept. */
  locationHint: string | null;
  jurisdiction: string | null;
  /** There are no replicas here: every query reads the newest state. */
  readReplication: "auto" | "disabled";
  createdOn: number;
}

export const databaseLimits = {
  databasesOfAccount: 50_000,
  nameMax: 64,
  /** SQL text and values of one call. */
  callBytesMax: 32 * 1024 * 1024,
  /** The rows of an answer (worker/run-statements.ts), as JSON. */
  answerBytesMax: 128 * 1024 * 1024,
  importBytesMax: 5 * 1024 ** 3,
  cpuMs: 30_000,
};

/** The object that holds the data. */
export const objectOf = (database: Pick<Database, "id">): { namespace: string; id: string } => {
  const namespace = namespaceOf(database);
  return { namespace, id: idFromName(namespace, "database") };
};

/** The namespace of that object. */
export const namespaceOf = ({ id }: Pick<Database, "id">): string => id.replaceAll("-", "");

/**
 * The state of a database after a number of writes, in the public form. Later states are greater as text.
 * @see https://developers.cloudflare.com/d1/reference/time-travel/
 */
export function bookmarkOf(database: Pick<Database, "id">, writes: number): string {
  const digits = writes.toString(16).padStart(16, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-00000000-${namespaceOf(database)}`;
}
