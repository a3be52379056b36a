import { dnsErrors, invalidContent } from "../errors.ts";
import { textOrEmpty, type RecordType, type ValueInput } from "./type.ts";

interface Member {
  name: string;
  min: number;
  max: number;
  /** Decimal places of the wire form. */
  decimals: number;
  default?: number;
}
const angle = (prefix: string, degreesMax: number): Member[] => [
  { name: `${prefix}_degrees`, min: 0, max: degreesMax, decimals: 0 },
  { name: `${prefix}_minutes`, min: 0, max: 59, decimals: 0, default: 0 },
  { name: `${prefix}_seconds`, min: 0, max: 59.999, decimals: 3, default: 0 },
];
const metres = (name: string, min: number, max: number, missing: number): Member => ({
  name,
  min,
  max,
  decimals: 2,
  default: missing,
});
const members = [
  ...angle("lat", 90),
  ...angle("long", 180),
  metres("altitude", -100_000, 42_849_672.95, 0),
  metres("size", 0, 90_000_000, 1),
  metres("precision_horz", 0, 90_000_000, 10_000),
  metres("precision_vert", 0, 90_000_000, 10),
];
const directions = { lat_direction: ["N", "S"], long_direction: ["E", "W"] } as const;

const number = String.raw`\d{1,9}(?:\.\d{1,9})?`;
const angleText = String.raw`(\d{1,3})(?:\s+(\d{1,3})(?:\s+(${number}))?)?\s+`;
const pattern = new RegExp(
  String.raw`^${angleText}([NS])\s+${angleText}([EW])\s+(-?${number})m?` +
    String.raw`(?:\s+(${number})m?(?:\s+(${number})m?(?:\s+(${number})m?)?)?)?$`,
  "i",
);
const order = [
  "lat_degrees",
  "lat_minutes",
  "lat_seconds",
  "lat_direction",
  "long_degrees",
  "long_minutes",
  "long_seconds",
  "long_direction",
  "altitude",
  "size",
  "precision_horz",
  "precision_vert",
];

/**
 * LOC (RFC 1876): degrees, minutes and seconds of latitude and longitude; altitude, size and precisions in
 * metres.
 */
export const LOC: RecordType = {
  parse(input) {
    const raw = input.data ?? fromContent(input.content);
    const unknown = Object.keys(raw).find((name) => !order.includes(name));
    if (unknown !== undefined) throw dnsErrors.unknownData("LOC", unknown, order);
    const data: Record<string, string | number> = {};
    for (const member of members) {
      const value = parseNumber(raw[member.name] ?? member.default, member);
      if (value === undefined) throw fault(input, member.name, rangeOf(member), raw[member.name]);
      data[member.name] = value;
    }
    for (const [name, allowed] of Object.entries(directions)) {
      const value = textOrEmpty(raw[name]).toUpperCase();
      if (!allowed.some((letter) => letter === value))
        throw fault(input, name, allowed.join(" or "), raw[name]);
      data[name] = value;
    }
    for (const [prefix, max] of [
      ["lat", 90],
      ["long", 180],
    ] as const) {
      const isBeyond =
        data[`${prefix}_degrees`] === max &&
        (data[`${prefix}_minutes`] !== 0 || data[`${prefix}_seconds`] !== 0);
      if (isBeyond) throw fault(input, `${prefix}_degrees`, `an angle of at most ${max} degrees`, max);
    }
    return { content: order.map((name) => print(name, data[name]!)).join(" "), data };
  },
};

function parseNumber(value: unknown, { min, max, decimals }: Member): number | undefined {
  if (typeof value !== "number" && !/^-?\d{1,9}(\.\d{1,9})?$/.test(textOrEmpty(value))) return undefined;
  const rounded = Number(Number(value).toFixed(decimals));
  if (decimals === 0 && rounded !== Number(value)) return undefined;
  return rounded >= min && rounded <= max ? rounded : undefined;
}

const rangeOf = ({ min, max, decimals }: Member): string =>
  `a ${decimals === 0 ? "whole " : ""}number from ${min} to ${max}`;

function print(name: string, value: string | number): string {
  const decimals = members.find((member) => member.name === name)?.decimals;
  if (typeof value === "string" || decimals === undefined || decimals === 0) return String(value);
  return decimals === 3 ? value.toFixed(3) : `${value.toFixed(2)}m`;
}

const fault = (input: ValueInput, field: string, expected: string, received: unknown): Error =>
  input.data === undefined
    ? invalidContent("LOC", `a location with ${expected} for ${field}`, input.content)
    : dnsErrors.invalidData("LOC", field, expected, received);

function fromContent(content: string | undefined): Record<string, unknown> {
  const match = pattern.exec(content?.trim() ?? "");
  if (match === null) {
    const form = 'of the form "51 30 12.748 N 0 7 39.612 W 0.00m 1m 10000m 10m"';
    throw invalidContent("LOC", form, content);
  }
  const given = order.map((name, index) => [name, match[index + 1]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}
