import { dnsErrors } from "../errors.ts";

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

/** A type whose value is its content, without members. */
export const plain = (
  type: string,
  expected: string,
  canonical: (content: string) => string | undefined,
): RecordType => ({
  parse(input) {
    refuseMembers(type, input);
    const content = canonical(input.content?.trim() ?? "");
    if (content === undefined) throw dnsErrors.invalidContent(type, expected, input.content);
    return { content };
  },
});

export function refuseMembers(type: string, input: ValueInput): void {
  const [member] = Object.keys(input.data ?? {});
  if (member !== undefined) throw dnsErrors.unknownData(type, member, []);
}

/** A member that should be text; anything else is read as none. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
