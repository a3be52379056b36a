import { show } from "../../../platform/util/json.ts";
import { suggest } from "../../../platform/util/suggest.ts";
import { formatColor, parseColor } from "./color.ts";
import { imageErrors } from "../errors.ts";

export const fits = [
  "scale-down",
  "contain",
  "scale-up",
  "cover",
  "crop",
  "aspect-crop",
  "pad",
  "squeeze",
] as const;
export type Fit = (typeof fits)[number];

/** The position of a crop: a side, a content-based mode, or a point as fractions of the cut-off rest. */
export type Gravity =
  | "auto"
  | "face"
  | "entropy"
  | { x: number; y: number; mode: "remainder" | "box-center" };

export const outputFormats = ["avif", "webp", "jpeg", "png", "gif"] as const;
export type OutputFormat = (typeof outputFormats)[number];

export interface Sides {
  top: number;
  right: number;
  bottom: number;
  left: number;
}
export type Trim = Sides | { left: number; top: number; width: number; height: number } | TrimBorder;
/** Trims pixels with the colour of the border: the top left pixel's, unless a colour is given. */
export interface TrimBorder {
  border: { color: string | undefined; tolerance: number; keep: number };
}
export interface Border extends Sides {
  color: string;
}

/** One requested transform. Colours are `#rrggbbaa`; absent options have their defaults. */
export interface Transform {
  width?: number | "auto";
  height?: number;
  fit?: Fit;
  gravity?: Gravity;
  zoom?: number;
  dpr?: number;
  quality?: number;
  slowConnectionQuality?: number;
  format?: OutputFormat | "auto" | "baseline-jpeg" | "png-force" | "json";
  anim?: boolean;
  background?: string;
  rotate?: 0 | 90 | 180 | 270;
  flip?: "h" | "v" | "hv";
  trim?: Trim;
  border?: Border;
  blur?: number;
  sharpen?: number;
  brightness?: number;
  contrast?: number;
  gamma?: number;
  saturation?: number;
  metadata?: "none" | "copyright" | "keep";
  compression?: "fast";
}

export const sidePixelsMax = 12_000;

/** Parses a value; undefined when it is invalid. */
interface Parser<T> {
  expected: string;
  parse(value: unknown): T | undefined;
}

const text = (value: unknown): string | undefined =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;
const integer = (min: number, max: number): Parser<number> => ({
  expected: `a whole number from ${min} to ${max}`,
  parse(value) {
    const found = text(value) ?? "";
    const number = /^\d{1,9}$/.test(found) ? Number(found) : Number.NaN;
    return number >= min && number <= max ? number : undefined;
  },
});
const decimal = (min: number, max: number): Parser<number> => ({
  expected: `a number from ${min} to ${max}`,
  parse(value) {
    const found = text(value) ?? "";
    const number = /^(\d{1,9}(\.\d{0,12})?|\.\d{1,12})$/.test(found) ? Number(found) : Number.NaN;
    return number >= min && number <= max ? number : undefined;
  },
});
const choice = <const T extends string>(...choices: readonly T[]): Parser<T> => ({
  expected: `one of ${choices.join(", ")}`,
  parse: (value) => choices.find((each) => each === value),
});
const either = <T, U>(first: Parser<T>, second: Parser<U>): Parser<T | U> => ({
  expected: `${first.expected}, or ${second.expected}`,
  parse: (value) => first.parse(value) ?? second.parse(value),
});
const renamed = <T extends string, U>(table: Record<T, U>): Parser<U> => ({
  expected: `one of ${Object.keys(table).join(", ")}`,
  parse: (value) =>
    typeof value === "string" && Object.hasOwn(table, value) ? table[value as T] : undefined,
});
const flag: Parser<boolean> = {
  expected: "true or false",
  parse: (value) =>
    value === true || value === "true" ? true : value === false || value === "false" ? false : undefined,
};
export const color: Parser<string> = {
  expected: "a CSS colour",
  parse(value) {
    const found = typeof value === "string" ? parseColor(value) : undefined;
    return found && formatColor(found);
  },
};

const at = (x: number, y: number) => ({ x, y, mode: "remainder" as const });
const gravitySides = {
  center: at(0.5, 0.5),
  left: at(0, 0.5),
  right: at(1, 0.5),
  top: at(0.5, 0),
  bottom: at(0.5, 1),
  "top-left": at(0, 0),
  "top-right": at(1, 0),
  "bottom-left": at(0, 1),
  "bottom-right": at(1, 1),
} as const;
const fraction = decimal(0, 1);
const gravity: Parser<Gravity> = {
  expected: `auto, face, entropy, ${Object.keys(gravitySides).join(", ")}, or XxY with coordinates from 0 to 1`,
  parse(value) {
    if (value === "auto" || value === "face" || value === "entropy") return value;
    if (typeof value === "string") {
      if (Object.hasOwn(gravitySides, value)) return gravitySides[value as keyof typeof gravitySides];
      const [x, y, ...more] = value.split("x").map((part) => fraction.parse(part));
      return x === undefined || y === undefined || more.length > 0 ? undefined : at(x, y);
    }
    if (typeof value !== "object" || value === null) return undefined;
    const { x = 0.5, y = 0.5, mode = "remainder", ...rest } = value as Record<string, unknown>;
    const [px, py] = [fraction.parse(x), fraction.parse(y)];
    if (px === undefined || py === undefined || Object.keys(rest).length > 0) return undefined;
    return mode === "remainder" || mode === "box-center" ? { x: px, y: py, mode } : undefined;
  },
};

const pixels = integer(0, 1_000_000);
const trim: Parser<Trim> = {
  expected: "border, or pixels as top;right;bottom;left",
  parse(value) {
    if (value === "border") return { border: { color: undefined, tolerance: 10, keep: 0 } };
    if (typeof value === "string") {
      const sides = value.split(";").map((side) => pixels.parse(side));
      return sides.length === 4 ? sidesOf(sides) : undefined;
    }
    if (typeof value !== "object" || value === null) return undefined;
    return trimOf(value as Record<string, unknown>);
  },
};

function sidesOf(sides: readonly (number | undefined)[]): Sides | undefined {
  const [top, right, bottom, left] = sides;
  if (top === undefined || right === undefined || bottom === undefined || left === undefined)
    return undefined;
  return { top, right, bottom, left };
}

function trimOf(value: Record<string, unknown>): Trim | undefined {
  const { border, ...rest } = value;
  if (border === true) return trim.parse("border");
  if (typeof border === "object" && border !== null && Object.keys(rest).length === 0) {
    const { color: shade, tolerance = 10, keep = 0, ...unknown } = border as Record<string, unknown>;
    const parsed = {
      color: shade === undefined ? undefined : color.parse(shade),
      tolerance: decimal(0, 255).parse(tolerance),
      keep: pixels.parse(keep),
    };
    const isWrong = (shade !== undefined && parsed.color === undefined) || Object.keys(unknown).length > 0;
    if (isWrong || parsed.tolerance === undefined || parsed.keep === undefined) return undefined;
    return { border: { color: parsed.color, tolerance: parsed.tolerance, keep: parsed.keep } };
  }
  const known = ["top", "right", "bottom", "left", "width", "height"];
  if (Object.keys(value).some((key) => !known.includes(key))) return undefined;
  const { top = 0, right = 0, bottom = 0, left = 0, width, height } = value;
  if (width === undefined && height === undefined)
    return sidesOf([top, right, bottom, left].map((side) => pixels.parse(side)));
  const box = [left, top, width, height].map((side) => pixels.parse(side));
  if (value["right"] !== undefined || value["bottom"] !== undefined) return undefined;
  const [x, y, w, h] = box;
  if (x === undefined || y === undefined || w === undefined || h === undefined) return undefined;
  return { left: x, top: y, width: w, height: h };
}

const border: Parser<Border> = {
  expected: "{color, width} or {color, top, right, bottom, left}",
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    const { color: shade, width, top, right, bottom, left, ...rest } = value as Record<string, unknown>;
    const found = color.parse(shade);
    const given = width === undefined ? [top, right, bottom, left] : [width, width, width, width];
    const sides = sidesOf(given.map((side) => integer(0, 1000).parse(side ?? 0)));
    if (found === undefined || sides === undefined || Object.keys(rest).length > 0) return undefined;
    return { color: found, ...sides };
  },
};

const quality = either(integer(1, 100), renamed({ low: 35, "medium-low": 50, "medium-high": 70, high: 90 }));
const format = renamed({
  auto: "auto",
  avif: "avif",
  webp: "webp",
  jpeg: "jpeg",
  jpg: "jpeg",
  "baseline-jpeg": "baseline-jpeg",
  png: "png",
  "png-force": "png-force",
  gif: "gif",
  json: "json",
  "image/avif": "avif",
  "image/webp": "webp",
  "image/jpeg": "jpeg",
  "image/png": "png",
  "image/gif": "gif",
} as const);

interface Option {
  field: keyof Transform | "ignored";
  parser: Parser<unknown>;
}
const option = (field: Option["field"], parser: Parser<unknown>): Option => ({ field, parser });

/** All options by long name. */
const options = new Map<string, Option>([
  ["width", option("width", either(integer(1, sidePixelsMax), choice("auto")))],
  ["height", option("height", integer(1, sidePixelsMax))],
  ["fit", option("fit", choice(...fits))],
  ["gravity", option("gravity", gravity)],
  ["zoom", option("zoom", fraction)],
  ["dpr", option("dpr", decimal(1, 3))],
  ["quality", option("quality", quality)],
  ["slow-connection-quality", option("slowConnectionQuality", quality)],
  ["format", option("format", format)],
  ["anim", option("anim", flag)],
  ["background", option("background", color)],
  ["rotate", option("rotate", renamed({ "0": 0, "90": 90, "180": 180, "270": 270, "360": 0 } as const))],
  ["flip", option("flip", renamed({ h: "h", v: "v", hv: "hv", vh: "hv" } as const))],
  ["trim", option("trim", trim)],
  ["border", option("border", border)],
  ["blur", option("blur", decimal(1, 250))],
  ["sharpen", option("sharpen", decimal(0, 10))],
  ["brightness", option("brightness", decimal(0, 2))],
  ["contrast", option("contrast", decimal(0, 2))],
  ["gamma", option("gamma", decimal(0, 2))],
  ["saturation", option("saturation", decimal(0, 100))],
  ["metadata", option("metadata", choice("none", "copyright", "keep"))],
  ["compression", option("compression", choice("fast"))],
  ["upscale", option("ignored", choice("interpolate"))],
  ["onerror", option("ignored", choice("redirect"))],
]);
const shortNames = new Map([
  ["w", "width"],
  ["h", "height"],
  ["q", "quality"],
  ["f", "format"],
  ["g", "gravity"],
  ["scq", "slow-connection-quality"],
  ["face-zoom", "zoom"],
  ["slowConnectionQuality", "slow-connection-quality"],
]);
/** Parts of trim and border, as in `trim.width=10`. */
const compound = /^(trim|border)((?:\.(?:border|color|tolerance|keep|width|height|top|right|bottom|left))+)$/;

/**
 * Parses the options of a delivery URL: comma-separated `name=value` pairs. A long name overrides its short
 * one; the first of two equal names wins.
 */
export function parseOptions(segment: string): Transform {
  const given = new Map<string, { value: unknown; isLong: boolean }>();
  for (const pair of pairsOf(segment)) {
    const equals = pair.indexOf("=");
    if (equals < 1) throw imageErrors.invalidTransform(`expected name=value but received ${show(pair)}`);
    const name = pair.slice(0, equals);
    const value = pair.slice(equals + 1);
    const parts = compound.exec(name);
    if (parts !== null) {
      setPart(given, parts[1]!, parts[2]!.slice(1).split("."), value);
      continue;
    }
    const long = shortNames.get(name) ?? name;
    const before = given.get(long);
    if (before === undefined || (long === name && !before.isLong))
      given.set(long, { value, isLong: long === name });
  }
  return build([...given].map(([name, { value }]) => [name, value]));
}

/** Parses the options of a script's transform. */
export function parseTransform(value: unknown): Transform {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw imageErrors.invalidTransform(`expected an object of options but received ${show(value)}`);
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return build(entries.map(([name, each]) => [shortNames.get(name) ?? name, each]));
}

function build(entries: readonly (readonly [string, unknown])[]): Transform {
  const transform: Record<string, unknown> = {};
  for (const [name, value] of entries) {
    const known = options.get(name);
    if (known === undefined) throw unknownOption(name);
    const parsed = known.parser.parse(typeof value === "number" && name === "rotate" ? String(value) : value);
    if (parsed === undefined)
      throw imageErrors.invalidTransform(
        `expected ${known.parser.expected} for ${name} but received ${show(value)}`,
      );
    if (known.field !== "ignored") transform[known.field] = parsed;
  }
  return transform;
}

function unknownOption(name: string): Error {
  if (name === "segment" || name === "draw")
    return imageErrors.invalidTransform(`the option ${name} is not available here`);
  const meant = suggest(name, [...options.keys(), ...shortNames.keys()]);
  const hint = meant === undefined ? "" : ` (did you mean ${meant}?)`;
  return imageErrors.invalidTransform(`unknown option ${show(name)}${hint}`);
}

/** Splits at commas. An escaped comma splits only before an option; elsewhere it is part of a value. */
function pairsOf(segment: string): string[] {
  let decoded: string[];
  try {
    decoded = segment.split(",").map((pair) => decodeURIComponent(pair));
  } catch {
    throw imageErrors.invalidTransform("the options have an invalid % escape");
  }
  return decoded.flatMap((pair) => pair.split(/,(?=[\w.-]+=)/));
}

function setPart(
  given: Map<string, { value: unknown; isLong: boolean }>,
  name: string,
  steps: readonly string[],
  value: string,
): void {
  const entry = given.get(name);
  let node = entry?.value;
  if (typeof node !== "object" || node === null) {
    node = {};
    given.set(name, { value: node, isLong: true });
  }
  let target = node as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) {
    const next = target[step];
    target = (typeof next === "object" && next !== null ? next : (target[step] = {})) as Record<
      string,
      unknown
    >;
  }
  target[steps.at(-1)!] ??= value;
}
