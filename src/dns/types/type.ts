/** What a client gives for a record's value: text, or members, or both in part. */
export interface ValueInput {
  content?: string | undefined;
  data?: Readonly<Record<string, unknown>> | undefined;
  priority?: number | undefined;
}

/** A value that has been checked, in its one canonical form. */
export interface Value {
  content: string;
  /** The same in members, for the types that have them. */
  data?: Record<string, unknown>;
  priority?: number;
}

/** The rules of one record type; `parse` throws when the value is not one of that type. */
export interface RecordType {
  parse(input: ValueInput): Value;
}

/** A member that should be text; anything else is read as none. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
