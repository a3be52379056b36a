import { dnsErrors, invalidContent } from "../errors.ts";

/** A record's value as a client sends it: content, data, or parts of both. */
export interface ValueInput {
  content?: string | undefined;
  data?: Readonly<Record<string, unknown>> | undefined;
  priority?: number | undefined;
}

/** A valid value in canonical form. */
export interface RecordValue {
  content: string;
  /** The same value as fields, for types that have them. */
  data?: Record<string, unknown>;
  priority?: number;
}

/** The rules of one record type. `parse` throws DomainError if the value is invalid. */
export interface RecordType {
  parse(input: ValueInput): RecordValue;
}

/** A type whose value is its content only, without data. */
export const plain = (
  type: string,
  expected: string,
  canonical: (content: string) => string | undefined,
): RecordType => ({
  parse(input) {
    refuseMembers(type, input);
    const content = canonical(input.content?.trim() ?? "");
    if (content === undefined) throw invalidContent(type, expected, input.content);
    return { content };
  },
});

export function refuseMembers(type: string, input: ValueInput): void {
  const [member] = Object.keys(input.data ?? {});
  if (member !== undefined) throw dnsErrors.unknownData(type, member, []);
}

/** A value that should be text. Other types become the empty string. */
export const textOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");
