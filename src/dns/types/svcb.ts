import { isIPv4, isIPv6 } from "node:net";
import { dnsErrors } from "../errors.ts";
import { canonicalIPv6 } from "./address.ts";
import { parseHost } from "./host.ts";
import { textOf, type RecordType } from "./type.ts";

/** Keys of RFC 9460 and RFC 9461, in the order in which they stand on the wire. */
const keyNumbers: Record<string, number> = {
  mandatory: 0,
  alpn: 1,
  "no-default-alpn": 2,
  port: 3,
  ipv4hint: 4,
  ech: 5,
  ipv6hint: 6,
  dohpath: 7,
};

export const keyNumber = (name: string): number | undefined => {
  const known = keyNumbers[name];
  if (known !== undefined) return known;
  const number = /^key(0|[1-9]\d{0,4})$/.exec(name)?.[1];
  return number !== undefined && Number(number) < 65_535 ? Number(number) : undefined;
};

const list = (value: string): string[] => value.split(",");

/** Each key's canonical value, or undefined when the value is not one for it. */
const values: Record<string, (value: string) => string | undefined> = {
  mandatory: (value) =>
    list(value).every((name) => keyNumber(name) !== undefined && name !== "mandatory") ? value : undefined,
  alpn: (value) => (list(value).every((id) => id !== "" && id.length <= 255) ? value : undefined),
  "no-default-alpn": (value) => (value === "" ? "" : undefined),
  port: (value) => (/^\d{1,5}$/.test(value) && Number(value) <= 65_535 ? String(Number(value)) : undefined),
  ipv4hint: (value) => (list(value).every((address) => isIPv4(address)) ? value : undefined),
  ipv6hint: (value) =>
    list(value).every((address) => isIPv6(address)) ? list(value).map(canonicalIPv6).join(",") : undefined,
  ech: (value) =>
    value !== "" && value.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(value) ? value : undefined,
  dohpath: (value) => (value.startsWith("/") && value.includes("{?dns}") ? value : undefined),
};

/** Parameters in the order of their keys, or a phrase that says what is wrong. */
export function parseParameters(text: string): { name: string; value: string }[] | string {
  const found = new Map<string, string>();
  const pattern = /\s*([a-z0-9-]+)(?:=(?:"([^"]*)"|([^\s"]*)))?(?=\s|$)\s*/iy;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (match === null) return 'parameters such as alpn="h3,h2" port=8443';
    const name = match[1]!.toLowerCase();
    if (keyNumber(name) === undefined) return `known parameters, or keyNNNNN, not "${name}"`;
    if (found.has(name)) return `the parameter ${name} once`;
    const value = (values[name] ?? ((raw: string) => raw))(match[2] ?? match[3] ?? "");
    if (value === undefined) return `a valid value for the parameter ${name}`;
    found.set(name, value);
  }
  for (const name of list(found.get("mandatory") ?? "").filter(Boolean)) {
    if (!found.has(name)) return `the parameter ${name}, which "mandatory" names`;
  }
  return [...found]
    .map(([name, value]) => ({ name, value }))
    .sort((a, b) => keyNumber(a.name)! - keyNumber(b.name)!);
}

const print = ({ name, value }: { name: string; value: string }): string =>
  value === "" ? name : `${name}="${value}"`;

const serviceBinding = (type: string): RecordType => ({
  parse(input) {
    const match = /^\s*(\S+)\s+(\S+)(?:\s+(.*))?$/s.exec(input.content ?? "");
    const raw = input.data ?? { priority: match?.[1], target: match?.[2], value: match?.[3] ?? "" };
    const wrong = (field: string, expected: string): Error =>
      input.data === undefined
        ? dnsErrors.invalidContent(
            type,
            `of the form "priority target parameters", with ${expected} for ${field},`,
            input.content,
          )
        : dnsErrors.invalidData(type, field, expected, raw[field]);
    for (const field of Object.keys(raw)) {
      if (!["priority", "target", "value"].includes(field))
        throw wrong(field, "only priority, target and value, not this member,");
    }
    const priority = Number(raw["priority"] ?? input.priority);
    if (!Number.isInteger(priority) || priority < 0 || priority > 65_535)
      throw wrong("priority", "a whole number from 0 to 65535");
    const target = parseHost(textOf(raw["target"]), { underscore: true, root: true });
    if (target === undefined) throw wrong("target", "a host name or “.”");
    const parameters = parseParameters(textOf(raw["value"]));
    if (typeof parameters === "string") throw wrong("value", parameters);
    if (priority === 0 && parameters.length > 0)
      throw wrong("value", "no parameters, since priority 0 makes it an alias");
    const value = parameters.map(print).join(" ");
    const content = [priority, target, value].filter((part) => part !== "").join(" ");
    return { content, data: { priority, target, value }, priority };
  },
});

export const SVCB = serviceBinding("SVCB");
export const HTTPS = serviceBinding("HTTPS");
