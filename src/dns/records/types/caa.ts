import { quoted, uint8, word } from "./fields.ts";
import { structured } from "./structured.ts";

/** Values of the properties that name a certificate authority (RFC 8659 §4.2): a domain, then parameters. */
const domain = "[a-z0-9]+(?:-+[a-z0-9]+)*(?:\\.[a-z0-9]+(?:-+[a-z0-9]+)*)*";
const parameter = "[a-z0-9-]+[ \\t]*=[ \\t]*[!-:<-~]*[ \\t]*";
const issuer = new RegExp(
  `^[ \\t]*(?:${domain})?[ \\t]*(?:;[ \\t]*(?:${parameter}(?:;[ \\t]*${parameter})*)?)?$`,
  "i",
);
const contact = /^(mailto:[^\s@]+@[^\s@]+|https?:\/\/\S+)$/i;

const issuers = { pattern: issuer, expected: 'a domain with parameters, or ";",' };
const propertyValues: Record<string, { pattern: RegExp; expected: string }> = {
  issue: issuers,
  issuewild: issuers,
  issuemail: issuers,
  issuevmc: issuers,
  iodef: { pattern: contact, expected: "a mailto: or https: address" },
};

/** CAA (RFC 8659): the authorities that may issue certificates for the name. */
export const CAA = structured(
  "CAA",
  [
    uint8("flags"),
    word("tag", /^[a-z0-9]{1,15}$/i, "a tag such as issue, issuewild or iodef"),
    quoted("value", 1024),
  ],
  {
    check({ tag, value }) {
      const known = propertyValues[String(tag)];
      return known === undefined || known.pattern.test(String(value))
        ? undefined
        : { field: "value", expected: known.expected };
    },
  },
);
