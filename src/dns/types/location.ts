import { dnsErrors } from "../errors.ts";
import { textOf } from "./type.ts";
import type { RecordType } from "./type.ts";

/** LOC (RFC 1876): degrees, minutes and seconds north or south and east or west, altitude, size and precisions in metres. */
interface Member {
  name: string;
  min: number;
  max: number;
  isWhole?: boolean;
  default?: number;
}
const angle = (prefix: string, degreesMax: number): Member[] => [
  { name: `${prefix}_degrees`, min: 0, max: degreesMax, isWhole: true },
  { name: `${prefix}_minutes`, min: 0, max: 59, isWhole: true, default: 0 },
  { name: `${prefix}_seconds`, min: 0, max: 59.999, default: 0 },
];
const latitude = angle("lat", 90);
const longitude = angle("long", 180);
const metres: Member[] = [
  { name: "altitude", min: -100_000, max: 42_849_672.95, default: 0 },
  { name: "size", min: 0, max: 90_000_000, default: 1 },
  { name: "precision_horz", min: 0, max: 90_000_000, default: 10_000 },
  { name: "precision_vert", min: 0, max: 90_000_000, default: 10 },
];
const members = [...latitude, ...longitude, ...metres];
const directions: Record<string, readonly string[]> = {
  lat_direction: ["N", "S"],
  long_direction: ["E", "W"],
};

const pattern =
  /^\s*(\d+)(?:\s+(\d+)(?:\s+(\d+(?:\.\d+)?))?)?\s+([NS])\s+(\d+)(?:\s+(\d+)(?:\s+(\d+(?:\.\d+)?))?)?\s+([EW])\s+(-?\d+(?:\.\d+)?)m?(?:\s+(\d+(?:\.\d+)?)m?(?:\s+(\d+(?:\.\d+)?)m?(?:\s+(\d+(?:\.\d+)?)m?)?)?)?\s*$/i;
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

export const LOC: RecordType = {
  parse(input) {
    const raw = input.data ?? fromContent(input.content ?? "");
    const wrong = (field: string, expected: string, received: unknown): Error =>
      input.data === undefined
        ? dnsErrors.invalidContent("LOC", `a location with ${expected} for ${field}`, input.content)
        : dnsErrors.invalidData("LOC", field, expected, received);
    const data: Record<string, unknown> = {};
    for (const name of Object.keys(raw)) {
      if (!order.includes(name)) throw wrong(name, `only ${order.join(", ")}, not this member,`, raw[name]);
    }
    for (const { name, min, max, isWhole, default: missing } of members) {
      const value = Number(raw[name] ?? missing ?? Number.NaN);
      if (!(value >= min && value <= max) || (isWhole === true && !Number.isInteger(value))) {
        throw wrong(name, `a ${isWhole === true ? "whole " : ""}number from ${min} to ${max}`, raw[name]);
      }
      data[name] = value;
    }
    for (const [name, allowed] of Object.entries(directions)) {
      const value = textOf(raw[name]).toUpperCase();
      if (!allowed.includes(value)) throw wrong(name, allowed.join(" or "), raw[name]);
      data[name] = value;
    }
    for (const [prefix, max] of [
      ["lat", 90],
      ["long", 180],
    ] as const) {
      const beyond =
        data[`${prefix}_degrees`] === max &&
        (data[`${prefix}_minutes`] !== 0 || data[`${prefix}_seconds`] !== 0);
      if (beyond) throw wrong(`${prefix}_degrees`, `an angle of at most ${max} degrees`, max);
    }
    const metre = new Set(metres.map(({ name }) => name));
    const content = order
      .map((name) =>
        metre.has(name)
          ? `${Number(data[name]).toFixed(2)}m`
          : name.endsWith("seconds")
            ? Number(data[name]).toFixed(3)
            : String(data[name]),
      )
      .join(" ");
    return { content, data };
  },
};

function fromContent(content: string): Record<string, unknown> {
  const match = pattern.exec(content);
  if (match === null) {
    throw dnsErrors.invalidContent(
      "LOC",
      'of the form "51 30 12.748 N 0 7 39.612 W 0.00m 1m 10000m 10m"',
      content,
    );
  }
  return Object.fromEntries(
    order.flatMap((name, index) => (match[index + 1] === undefined ? [] : [[name, match[index + 1]]])),
  );
}
