import { hex, oneOf, uint16, uint8 } from "./fields.ts";
import { algorithm } from "./keys.ts";
import { structured, type FieldFault } from "./structured.ts";
import type { RecordType } from "./type.ts";

/** Requires `field` to have the number of hex digits for the digest type in the field `kind`. */
const digits =
  (field: string, kind: string, lengths: Readonly<Record<number, number>>) =>
  (data: Record<string, unknown>): FieldFault | undefined => {
    const number = data[kind] as number;
    const length = lengths[number];
    return length === undefined || (data[field] as string).length === length
      ? undefined
      : { field, expected: `${length} hexadecimal digits, because ${kind} is ${number},` };
  };

const association = (type: string): RecordType =>
  structured(type, [uint8("usage"), uint8("selector"), uint8("matching_type"), hex("certificate")], {
    check: digits("certificate", "matching_type", { 1: 64, 2: 128 }),
  });
export const TLSA = association("TLSA");
export const SMIMEA = association("SMIMEA");

export const SSHFP = structured(
  "SSHFP",
  [oneOf("algorithm", [1, 2, 3, 4, 6]), oneOf("type", [1, 2]), hex("fingerprint")],
  { check: digits("fingerprint", "type", { 1: 40, 2: 64 }) },
);

export const DS = structured(
  "DS",
  [uint16("key_tag"), algorithm("algorithm"), oneOf("digest_type", [1, 2, 4]), hex("digest")],
  { check: digits("digest", "digest_type", { 1: 40, 2: 64, 4: 96 }) },
);
