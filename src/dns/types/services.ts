import { host, quoted, uint16, type Field } from "./fields.ts";
import { structured } from "./structured.ts";

export const SRV = structured("SRV", [uint16("weight"), uint16("port"), host("target")], {
  priority: "in-both",
});

export const URI = structured(
  "URI",
  [
    uint16("weight"),
    quoted("target", 2048, /^[a-z][a-z0-9+.-]*:[^\s"]+$/i, "a URI such as https://www.example.com/"),
  ],
  { priority: "beside-data" },
);

const replacement: Field = {
  ...host("replacement"),
  // An empty replacement is how several clients write the root.
  parse: (value) => host("replacement").parse(value === "" ? "." : value),
};

/** NAPTR (RFC 3403): rewrites by a regular expression or to another name, never both. */
export const NAPTR = structured(
  "NAPTR",
  [
    uint16("order"),
    uint16("preference"),
    quoted("flags", 255, /^[a-z0-9]?$/i, "one letter or digit, or nothing,"),
    quoted("service", 255, /^[a-z0-9+:._-]*$/i, "a service such as SIP+D2U, or nothing,"),
    quoted("regex", 255),
    replacement,
  ],
  {
    check: (data) =>
      data["regex"] !== "" && data["replacement"] !== "."
        ? { field: "replacement", expected: '"." beside a regex' }
        : undefined,
  },
);
