import { host, quoted, structured, uint16 } from "./structured.ts";

export const SRV = structured(
  "SRV",
  [uint16("weight"), uint16("port"), host("target", { underscore: true, root: true })],
  { priority: "in-data" },
);

export const URI = structured("URI", [uint16("weight"), quoted("target", /^[^\s"]+$/, "a URI")], {
  priority: "bare",
});

export const NAPTR = structured(
  "NAPTR",
  [
    uint16("order"),
    uint16("preference"),
    { ...quoted("flags", /^[a-z0-9]?$/i, "one letter or digit, or nothing") },
    quoted("service", /^[a-z0-9+:._-]*$/i, "a service such as SIP+D2U"),
    quoted("regex"),
    host("replacement", { underscore: true, root: true }),
  ].map((field) =>
    field.name === "replacement"
      ? // An empty replacement is how several clients write the root.
        { ...field, parse: (value: unknown) => field.parse(value === "" ? "." : value) }
      : field,
  ),
  {
    check: (data) =>
      data["regex"] !== "" && data["replacement"] !== "."
        ? { field: "replacement", expected: "“.” beside a regex (RFC 3403: one or the other)" }
        : undefined,
  },
);
