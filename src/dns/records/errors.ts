import { defineErrors, DomainError, DomainErrors } from "../../platform/domain-error.ts";
import { show, showList } from "../../platform/util/json.ts";

const describeContent = (type: string, what: string, received: unknown) => ({
  message: `Content for ${type} record must be ${what} but received ${show(received)}`,
  pointer: "/body/content",
});
const describePriority = (received: unknown) => ({
  message: `Expected a whole number from 0 to 65535 for priority but received ${show(received)}`,
  pointer: "/body/priority",
});

export const dnsErrors = defineErrors("dns", {
  invalidName: (name: string, why: string) => ({
    message: `DNS name is invalid: expected a name inside the zone for name but received ${show(name)}: ${why}`,
    pointer: "/body/name",
  }),
  invalidType: (type: string, known: readonly string[]) => ({
    message: `DNS record type ${show(type)} is invalid: expected one of ${showList(known)}`,
    pointer: "/body/type",
  }),
  /** Callers use `invalidContent`, which picks one of these four. */
  badContent: describeContent,
  badAaaa: describeContent,
  badCname: describeContent,
  badMx: describeContent,
  invalidData: (type: string, field: string, what: string, received: unknown) => ({
    message: `Expected ${what} for data.${field} of ${article(type)} ${type} record but received ${show(received)}`,
    pointer: `/body/data/${field}`,
  }),
  unknownData: (type: string, field: string, known: readonly string[]) => ({
    message:
      known.length === 0
        ? `Unknown field "${field}" in data: the value of ${article(type)} ${type} record belongs in content`
        : `Unknown field "${field}" in data of ${article(type)} ${type} record: expected only ${known.join(", ")}`,
    pointer: `/body/data/${field}`,
  }),
  /** Callers use `invalidPriority`, which picks one of these two. */
  noPriority: describePriority,
  badPriority: describePriority,
  invalidTtl: (min: number, received: unknown) => ({
    message: `Invalid TTL. Must be between ${min} and 86400 seconds, or 1 for Automatic, but received ${show(received)}`,
    pointer: "/body/ttl",
  }),
  /** `what` is a phrase such as "a TXT record". */
  notProxiable: (what: string) => ({
    message: `Expected false for proxied but received true: ${what} cannot be proxied`,
    pointer: "/body/proxied",
  }),
  invalidSetting: (field: string, why: string) => ({
    message: `Expected ${why} for settings.${field} but received true`,
    pointer: `/body/settings/${field}`,
  }),
  invalidTag: (tag: string, why: string) => ({
    message: `Expected ${why} for tags but received ${show(tag)}`,
    pointer: "/body/tags",
  }),
  invalidComment: (why: string, received: string) => ({
    message: `Expected ${why} for comment but received ${show(received)}`,
    pointer: "/body/comment",
  }),
  addressConflict: () => ({
    message: "An A, AAAA, or CNAME record with that host already exists.",
    pointer: "/body/name",
  }),
  cnameConflict: () => ({ message: "A CNAME record with that host already exists.", pointer: "/body/name" }),
  otherConflict: (other: string) => ({
    message: `A record with that host already exists: ${article(other)} ${other} record. Beside it, a CNAME record is allowed only if it is proxied or flattened.`,
    pointer: "/body/name",
  }),
  delegationConflict: () => ({ message: "NS records with that host already exist.", pointer: "/body/name" }),
  identical: () => ({ message: "An identical record already exists.", pointer: "/body" }),
  /** Reported after `identical`. */
  exists: () => ({ message: "The record already exists.", pointer: "/body" }),
  textTooLong: (limit: number, received: number) => ({
    message: `Expected at most ${limit} characters in all TXT records of one name but received ${received}`,
    pointer: "/body/content",
  }),
  nameFull: (limit: number) => ({
    message: `Record quota exceeded: expected at most ${limit} records of one name`,
    pointer: "/body/name",
  }),
  nullMx: () => ({
    message: 'Expected the null MX record, with the content ".", to be the only MX record of its name',
    pointer: "/body/content",
  }),
  notFound: (id: string) => `Record does not exist: the zone has no record with the id ${id}`,
  otherId: (expected: string, received: string) => ({
    message: `Expected the record's own id, "${expected}", for id but received ${show(received)}`,
    pointer: "/body/id",
  }),
  quota: (limit: number, received: number) =>
    `Record quota exceeded: expected at most ${limit} records in the zone but this change would make ${received}`,
  batchTooLarge: (limit: number, received: number) => ({
    message: `Expected at most ${limit} operations in a batch but received ${received}`,
    pointer: "/body",
  }),
  shadowOfApex: (parameter: string, received: string) => ({
    message: `Expected a name below the zone's own for ${parameter} but received ${show(received)}`,
    pointer: `/query/${parameter}`,
  }),
  importFault: (line: number, why: string) => ({
    message: `Zone file, line ${line}: ${why}`,
    pointer: "/body/file",
  }),
});

/** Types for whose content the public API has codes of their own. */
const contentErrors: Readonly<
  Record<string, (...details: Parameters<typeof describeContent>) => DomainError>
> = {
  AAAA: dnsErrors.badAaaa,
  CNAME: dnsErrors.badCname,
  MX: dnsErrors.badMx,
};

/** The error for the content of a type. `what` is a phrase such as "a valid IPv4 address". */
export const invalidContent = (type: string, what: string, received: unknown): DomainError =>
  (contentErrors[type] ?? dnsErrors.badContent)(type, what, received);

/** The error for a missing (undefined) or invalid priority. */
export const invalidPriority = (received: unknown): DomainError =>
  received === undefined ? dnsErrors.noPriority(received) : dnsErrors.badPriority(received);

/** The indefinite article for a record type, as it is spoken: "an MX", "a TXT". */
export const article = (type: string): string =>
  /^(A|AAAA|HTTPS|LOC|MX|NAPTR|NS|OPENPGPKEY|SMIMEA|SRV|SSHFP|SVCB)$/.test(type) ? "an" : "a";

/** Adds the operation of a batch to an error. `operation` has the form "posts/3". */
export function inBatch(error: unknown, operation: string): unknown {
  if (error instanceof DomainErrors)
    return new DomainErrors(error.errors.map((each) => withPath(each, operation)));
  return error instanceof DomainError ? withPath(error, operation) : error;
}

function withPath({ kind, message, pointer = "" }: DomainError, operation: string): DomainError {
  return new DomainError(kind, {
    message: `${operation.replace("/", "[")}]: ${message}`,
    pointer: `/body/${operation}${pointer.replace(/^\/body/, "")}`,
  });
}

/** Adds the line of a zone file to an error. */
export const inFile = (error: unknown, line: number): unknown =>
  error instanceof DomainError || error instanceof DomainErrors
    ? dnsErrors.importFault(line, error.message)
    : error;
