import { isIPv4, isIPv6 } from "node:net";
import { canonicalIPv6 } from "./address.ts";
import { parseBase64 } from "./fields.ts";

/** Keys of RFC 9460, RFC 9461 and RFC 9540 with their numbers, which determine their order. */
const keyNumbers: Readonly<Record<string, number>> = {
  mandatory: 0,
  alpn: 1,
  "no-default-alpn": 2,
  port: 3,
  ipv4hint: 4,
  ech: 5,
  ipv6hint: 6,
  dohpath: 7,
  ohttp: 8,
};
const keyNumberMax = 65_534;

/**
 * The number of a parameter's key; undefined if there is no such key. Keys with a name cannot be written as
 * keyNNNNN.
 */
export function keyNumber(name: string): number | undefined {
  if (Object.hasOwn(keyNumbers, name)) return keyNumbers[name];
  const number = Number(/^key(0|[1-9]\d{0,4})$/.exec(name)?.[1] ?? Number.NaN);
  return number > 8 && number <= keyNumberMax ? number : undefined;
}

const listOf = (value: string, parse: (item: string) => string | undefined): string | undefined => {
  const items = value.split(",").map(parse);
  return items.includes(undefined) ? undefined : items.join(",");
};
const flag = (value: string): string | undefined => (value === "" ? "" : undefined);

function mandatory(value: string): string | undefined {
  const names = value.toLowerCase().split(",");
  if (names.some((name) => name === "mandatory" || keyNumber(name) === undefined)) return undefined;
  if (new Set(names).size < names.length) return undefined;
  return names.sort((a, b) => keyNumber(a)! - keyNumber(b)!).join(",");
}

/** For each key, the canonical form of a value, or undefined if it is invalid. */
const values: Readonly<Record<string, (value: string) => string | undefined>> = {
  mandatory,
  alpn: (value) => listOf(value, (id) => (/^[!#-+\--[\]-~]{1,255}$/.test(id) ? id : undefined)),
  "no-default-alpn": flag,
  port: (value) => (/^\d{1,5}$/.test(value) && Number(value) <= 65_535 ? String(Number(value)) : undefined),
  ipv4hint: (value) => listOf(value, (address) => (isIPv4(address) ? address : undefined)),
  ech: parseBase64,
  ipv6hint: (value) => listOf(value, (address) => (isIPv6(address) ? canonicalIPv6(address) : undefined)),
  dohpath: (value) => (value.startsWith("/") && value.includes("{?dns}") ? value : undefined),
  ohttp: flag,
};
const unnamed = (value: string): string | undefined => (/^[\x20-\x7e]*$/.test(value) ? value : undefined);

export interface ServiceParameter {
  name: string;
  value: string;
}

/** Parses parameters and sorts them by key. On failure, returns a phrase for the expected value. */
export function parseParameters(text: string): ServiceParameter[] | string {
  const found = new Map<string, string>();
  const pattern = /\s*([a-z0-9-]+)(?:=(?:"([^"\\]*)"|([^\s"\\]*)))?(?=\s|$)\s*/iy;
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text);
    if (match === null) return text.trim() === "" ? [] : 'parameters such as alpn="h3,h2" port="8443"';
    const name = match[1]!.toLowerCase();
    if (keyNumber(name) === undefined) {
      return `parameters of ${Object.keys(keyNumbers).join(", ")} or keyNNNNN, not "${name}",`;
    }
    if (found.has(name)) return `the parameter ${name} once`;
    const value = (values[name] ?? unnamed)(match[2] ?? match[3] ?? "");
    if (value === undefined) return `a valid value for the parameter ${name}`;
    found.set(name, value);
  }
  for (const name of found.get("mandatory")?.split(",") ?? []) {
    if (!found.has(name)) return `the parameter ${name}, which "mandatory" names,`;
  }
  if (found.has("no-default-alpn") && !found.has("alpn"))
    return 'the parameter alpn beside "no-default-alpn"';
  return [...found]
    .map(([name, value]) => ({ name, value }))
    .sort((a, b) => keyNumber(a.name)! - keyNumber(b.name)!);
}

export const printParameter = ({ name, value }: ServiceParameter): string =>
  value === "" ? name : `${name}="${value}"`;
