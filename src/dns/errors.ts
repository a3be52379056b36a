import { ApiError } from "../api/errors.ts";
import { show } from "../util/json.ts";

const refuse = (code: number, message: string, pointer?: string): ApiError =>
  new ApiError(400, code, message, { pointer });

/** Faults of DNS records, with the codes that the public API gives them. */
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
      `DNS record type ${show(type)} is invalid: expected one of ${known.join(", ")}`,
      "/body/type",
    ),
  /** `what` is a phrase such as "a valid IPv4 address". */
  invalidContent: (type: string, what: string, received: unknown) =>
    refuse(
      type === "CNAME" ? 9007 : 9005,
      `Content for ${type} record must be ${what} but received ${show(received)}`,
      "/body/content",
    ),
  invalidData: (type: string, field: string, what: string, received: unknown) =>
    refuse(
      9101,
      `Expected ${what} for data.${field} of a ${type} record but received ${show(received)}`,
      `/body/data/${field}`,
    ),
  invalidPriority: (received: unknown) =>
    refuse(
      9009,
      `Expected a whole number from 0 to 65535 for priority but received ${show(received)}`,
      "/body/priority",
    ),
  invalidTtl: (min: number, received: unknown) =>
    refuse(
      9021,
      `Invalid TTL. Must be between ${min} and 86400 seconds, or 1 for Automatic, but received ${show(received)}`,
      "/body/ttl",
    ),
  notProxiable: (type: string, why: string) =>
    refuse(9041, `A ${type} record ${why} cannot be proxied`, "/body/proxied"),
  invalidSetting: (field: string, why: string) =>
    refuse(9207, `Expected ${why} for settings.${field}`, `/body/settings/${field}`),
  invalidTag: (tag: string, why: string) =>
    refuse(9301, `Expected ${why} for tags but received ${show(tag)}`, "/body/tags"),
  invalidComment: (why: string) => refuse(9300, `Expected ${why} for comment`, "/body/comment"),
  addressConflict: () =>
    refuse(81053, "An A, AAAA, or CNAME record with that host already exists.", "/body/name"),
  cnameConflict: () => refuse(81054, "A CNAME record with that host already exists.", "/body/name"),
  otherConflict: (type: string) =>
    refuse(
      81055,
      `A record with that host already exists, beside which a ${type} record cannot stand.`,
      "/body/name",
    ),
  identical: () => refuse(81058, "An identical record already exists.", "/body"),
  textTooLong: (limit: number) =>
    refuse(9212, `Expected at most ${limit} characters in all TXT records of one name`, "/body/content"),
  nullMx: () =>
    refuse(
      9210,
      "Expected the null MX record, of target “.”, to be the only MX record of its name",
      "/body/content",
    ),
  notFound: (id: string) =>
    new ApiError(404, 81044, `Record does not exist: the zone has none with the id ${id}`),
  quota: (limit: number) =>
    refuse(81045, `Record quota exceeded: expected at most ${limit} records in the zone`),
  batchTooLarge: (limit: number, received: number) =>
    refuse(9208, `Expected at most ${limit} operations in a batch but received ${received}`, "/body"),
  importFault: (line: number, why: string) => refuse(81059, `Zone file, line ${line}: ${why}`, "/body/file"),
};
