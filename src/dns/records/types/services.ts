import { host, quoted, uint16, type Field } from "./fields.ts";
import { structured } from "./structured.ts";
import type { RecordType } from "./type.ts";

const srv = structured("SRV", [uint16("weight"), uint16("port"), host("target")], { priority: "in-both" });

/**
 * SRV also accepts the form that the public API dropped in May 2024, in which `data` has the parts of the
 * record's name. They stay in `data`, because these clients compare it with the data that they sent.
 */
export const SRV: RecordType = {
  parse(input) {
    if (nameInData(input.data) === undefined) return srv.parse(input);
    const { service, proto, name, ...data } = input.data!;
    const value = srv.parse({ ...input, data });
    const parts = { service, proto, ...(name === undefined ? {} : { name }) };
    return { ...value, data: { ...value.data, ...parts } };
  },
};

/**
 * The name in the older form of an SRV record's `data`, relative to the zone unless data.name is absolute;
 * undefined if there is none.
 */
export function nameInData(data: Readonly<Record<string, unknown>> | null | undefined): string | undefined {
  const { service, proto, name = "" } = data ?? {};
  if (typeof service !== "string" || typeof proto !== "string" || typeof name !== "string") return undefined;
  return [service, proto, ...(name === "" || name === "@" ? [] : [name])].join(".");
}

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
  // Several clients write the root as an empty replacement.
  parse: (value) => host("replacement").parse(value === "" ? "." : value),
};

/** NAPTR (RFC 3403): rewrites with a regular expression or to another name, but not both. */
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
