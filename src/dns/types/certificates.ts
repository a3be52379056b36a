import { base64, hex, quoted, structured, uint16, uint8, word, type Field } from "./structured.ts";
import type { RecordType } from "./type.ts";
import { dnsErrors } from "../errors.ts";

const digits =
  (field: string, lengths: ReadonlyMap<number, number>, kind: string) => (data: Record<string, unknown>) => {
    const length = lengths.get(data[kind] as number);
    if (length === undefined || String(data[field]).length === length) return undefined;
    return { field, expected: `${length} hexadecimal digits (${kind} ${String(data[kind])})` };
  };
const oneOf = (name: string, values: readonly number[]): Field => {
  const number = uint8(name);
  return {
    ...number,
    expected: `one of ${values.join(", ")}`,
    parse(value) {
      const parsed = number.parse(value);
      return values.includes(parsed as number) ? parsed : undefined;
    },
  };
};

export const CAA = structured("CAA", [
  uint8("flags"),
  word("tag", /^[a-z0-9]{1,15}$/i, "a tag such as issue, issuewild or iodef", (tag) => tag.toLowerCase()),
  quoted("value"),
]);

const shaLengths = new Map([
  [1, 64],
  [2, 128],
]);
const association = (type: string): RecordType =>
  structured(type, [uint8("usage"), uint8("selector"), uint8("matching_type"), hex("certificate")], {
    check: digits("certificate", shaLengths, "matching_type"),
  });
export const TLSA = association("TLSA");
export const SMIMEA = association("SMIMEA");

export const SSHFP = structured(
  "SSHFP",
  [oneOf("algorithm", [1, 2, 3, 4, 6]), oneOf("type", [1, 2]), hex("fingerprint")],
  {
    check: digits(
      "fingerprint",
      new Map([
        [1, 40],
        [2, 64],
      ]),
      "type",
    ),
  },
);

export const DS = structured(
  "DS",
  [uint16("key_tag"), uint8("algorithm"), oneOf("digest_type", [1, 2, 4]), hex("digest")],
  {
    check: digits(
      "digest",
      new Map([
        [1, 40],
        [2, 64],
        [4, 96],
      ]),
      "digest_type",
    ),
  },
);

export const DNSKEY = structured("DNSKEY", [
  uint16("flags"),
  oneOf("protocol", [3]),
  uint8("algorithm"),
  base64("public_key"),
]);

export const CERT = structured("CERT", [
  uint16("type"),
  uint16("key_tag"),
  uint8("algorithm"),
  base64("certificate"),
]);

const key = base64("public_key");
export const OPENPGPKEY: RecordType = {
  parse({ content }) {
    const parsed = key.parse(content);
    if (parsed === undefined) throw dnsErrors.invalidContent("OPENPGPKEY", "base64 text", content);
    return { content: parsed as string };
  },
};
