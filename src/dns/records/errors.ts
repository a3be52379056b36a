import { ApiError, ApiErrors } from "../../control/api/errors.ts";
import { show, showList } from "../../platform/util/json.ts";

const refuse = (code: number, message: string, pointer?: string): ApiError =>
  new ApiError(400, code, message, { pointer });

/** Codes of the public API for the content of some types. All other types use 9005. */
const contentCodes: Record<string, number> = { AAAA: 9006, CNAME: 9007, MX: 9009 };

/** Errors of DNS records, with the codes of the public API. */
export const dnsErrors = {
  invalidName: (name: string, why: string) =>
    refuse(
      9000,
      `DNS name is invalid: expected a name inside the zone for name but received ${show(name)}: ${why}`,
      "/body/name",
    ),
  invalidType: (type: string, known: readonly string[]) =>
    refuse(
      9004,
      `DNS record type ${show(type)} is invalid: expected one of ${showList(known)}`,
      "/body/type",
    ),
  /** `what` is a phrase such as "a valid IPv4 address". */
  invalidContent: (type: string, what: string, received: unknown) =>
    refuse(
      contentCodes[type] ?? 9005,
      `Content for ${type} record must be ${what} but received ${show(received)}`,
      "/body/content",
    ),
  invalidData: (type: string, field: string, what: string, received: unknown) =>
    refuse(
      9101,
      `Expected ${what} for data.${field} of ${article(type)} ${type} record but received ${show(received)}`,
      `/body/data/${field}`,
    ),
  unknownData: (type: string, field: string, known: readonly string[]) =>
    refuse(
      9101,
      known.length === 0
        ? `Unknown field "${field}" in data: the value of ${article(type)} ${type} record belongs in content`
        : `Unknown field "${field}" in data of ${article(type)} ${type} record: expected only ${known.join(", ")}`,
      `/body/data/${field}`,
    ),
  invalidPriority: (received: unknown) =>
    refuse(
      received === undefined ? 9100 : 9009,
      `Expected a whole number from 0 to 65535 for priority but received ${show(received)}`,
      "/body/priority",
    ),
  invalidTtl: (min: number, received: unknown) =>
    refuse(
      9021,
      `Invalid TTL. Must be between ${min} and 86400 seconds, or 1 for Automatic, but received ${show(received)}`,
      "/body/ttl",
    ),
  /** `what` is a phrase such as "a TXT record". */
  notProxiable: (what: string) =>
    refuse(9041, `Expected false for proxied but received true: ${what} cannot be proxied`, "/body/proxied"),
  invalidSetting: (field: string, why: string) =>
    refuse(9207, `Expected ${why} for settings.${field} but received true`, `/body/settings/${field}`),
  invalidTag: (tag: string, why: string) =>
    refuse(9301, `Expected ${why} for tags but received ${show(tag)}`, "/body/tags"),
  invalidComment: (why: string, received: string) =>
    refuse(9300, `Expected ${why} for comment but received ${show(received)}`, "/body/comment"),
  addressConflict: () =>
    refuse(81053, "An A, AAAA, or CNAME record with that host already exists.", "/body/name"),
  cnameConflict: () => refuse(81054, "A CNAME record with that host already exists.", "/body/name"),
  otherConflict: (other: string) =>
    refuse(
      81055,
      `A record with that host already exists: ${article(other)} ${other} record. Beside it, a CNAME record is allowed only if it is proxied or flattened.`,
      "/body/name",
    ),
  delegationConflict: () => refuse(81056, "NS records with that host already exist.", "/body/name"),
  identical: () => refuse(81058, "An identical record already exists.", "/body"),
  /** The public API used this code until 2025, and older clients recognize an existing record by it. */
  exists: () => refuse(81057, "The record already exists.", "/body"),
  textTooLong: (limit: number, received: number) =>
    refuse(
      9212,
      `Expected at most ${limit} characters in all TXT records of one name but received ${received}`,
      "/body/content",
    ),
  nameFull: (limit: number) =>
    refuse(81046, `Record quota exceeded: expected at most ${limit} records of one name`, "/body/name"),
  nullMx: () =>
    refuse(
      9210,
      'Expected the null MX record, with the content ".", to be the only MX record of its name',
      "/body/content",
    ),
  notFound: (id: string) =>
    new ApiError(404, 81044, `Record does not exist: the zone has no record with the id ${id}`),
  otherId: (expected: string, received: string) =>
    refuse(
      9207,
      `Expected the record's own id, "${expected}", for id but received ${show(received)}`,
      "/body/id",
    ),
  quota: (limit: number, received: number) =>
    refuse(
      81045,
      `Record quota exceeded: expected at most ${limit} records in the zone but this change would make ${received}`,
    ),
  batchTooLarge: (limit: number, received: number) =>
    refuse(9208, `Expected at most ${limit} operations in a batch but received ${received}`, "/body"),
  shadowOfApex: (parameter: string, received: string) =>
    refuse(
      9207,
      `Expected a name below the zone's own for ${parameter} but received ${show(received)}`,
      `/query/${parameter}`,
    ),
  importFault: (line: number, why: string) => refuse(81059, `Zone file, line ${line}: ${why}`, "/body/file"),
};

export const article = (type: string): string =>
  /^(A|AAAA|HTTPS|LOC|MX|NAPTR|NS|OPENPGPKEY|SMIMEA|SRV|SSHFP|SVCB)$/.test(type) ? "an" : "a";

/** Adds the operation of a batch to an error. `operation` has the form "posts/3". */
export function inBatch(error: unknown, operation: string): unknown {
  if (error instanceof ApiErrors) return new ApiErrors(error.errors.map((each) => placed(each, operation)));
  return error instanceof ApiError ? placed(error, operation) : error;
}

function placed(error: ApiError, operation: string): ApiError {
  const pointer = `/body/${operation}${(error.pointer ?? "").replace(/^\/body/, "")}`;
  return new ApiError(error.status, error.code, `${operation.replace("/", "[")}]: ${error.message}`, {
    pointer,
  });
}

/** Adds the line of a zone file to an error. */
export const inFile = (error: unknown, line: number): unknown =>
  error instanceof ApiError || error instanceof ApiErrors
    ? dnsErrors.importFault(line, error.message)
    : error;
