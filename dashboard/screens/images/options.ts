export type PictureOption = { name: string; values: readonly string[] } | { name: string; hint?: string };

/** The options of transformations, by their kind. */
export const groups: readonly { title: string; options: readonly PictureOption[] }[] = [
  {
    title: "Size",
    options: [
      { name: "width", hint: "1–12000" },
      { name: "height", hint: "1–12000" },
      {
        name: "fit",
        values: ["scale-down", "contain", "scale-up", "cover", "crop", "aspect-crop", "pad", "squeeze"],
      },
      { name: "dpr", hint: "1–3" },
      { name: "trim", hint: "border, or top;right;bottom;left" },
    ],
  },
  {
    title: "Crop",
    options: [
      { name: "gravity", values: ["auto", "face", "center", "left", "right", "top", "bottom", "entropy"] },
      { name: "zoom", hint: "0–1, for face" },
      { name: "rotate", values: ["90", "180", "270"] },
      { name: "flip", values: ["h", "v", "hv"] },
      { name: "background", hint: "a CSS colour" },
    ],
  },
  {
    title: "Colour",
    options: [
      { name: "blur", hint: "1–250" },
      { name: "sharpen", hint: "0–10" },
      { name: "brightness", hint: "0–2" },
      { name: "contrast", hint: "0–2" },
      { name: "gamma", hint: "0–2" },
      { name: "saturation", hint: "0–100" },
    ],
  },
  {
    title: "Output",
    options: [
      { name: "format", values: ["auto", "avif", "webp", "jpeg", "png", "gif"] },
      { name: "quality", hint: "1–100" },
      { name: "metadata", values: ["none", "copyright", "keep"] },
      { name: "anim", values: ["true", "false"] },
      { name: "slow-connection-quality", hint: "1–100" },
      { name: "compression", values: ["fast"] },
    ],
  },
];

export const optionNames: readonly string[] = groups.flatMap(({ options }) =>
  options.map(({ name }) => name),
);

/** The options that are given, by their long names. */
export type Options = Readonly<Record<string, string>>;

const shortNames: Options = {
  w: "width",
  h: "height",
  q: "quality",
  f: "format",
  g: "gravity",
  scq: "slow-connection-quality",
  "face-zoom": "zoom",
  slowConnectionQuality: "slow-connection-quality",
};

/** The options of a variant. */
export const variantNames: readonly string[] = ["fit", "width", "height", "metadata", "blur"];

/** The part of the address with the options: "width=600,fit=cover". */
export const optionsText = (values: Options): string =>
  optionNames
    .filter((name) => (values[name] ?? "") !== "")
    .map((name) => `${name}=${encodeURIComponent(values[name]!)}`)
    .join(",");

const refuseUnknown = (name: string, known: readonly string[], what: string): void => {
  if (!known.includes(name)) throw new Error(`“${name}” is no option of ${what}: ${known.join(", ")}`);
};

/** The options in the last part of an address. Throws what is wrong with them. */
export function optionsIn(segment: string): Options {
  const found: Record<string, string> = {};
  for (const pair of segment.split(",")) {
    const [, given, value] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
    if (given === undefined || value === undefined)
      throw new Error(`expected name=value but received “${pair}”`);
    const name = shortNames[given] ?? given;
    refuseUnknown(name, optionNames, "this page");
    found[name] ??= decodeURIComponent(value);
  }
  return found;
}

/** The name of a variant, or options, in an address of the picture. Throws if it is none of its addresses. */
export function inAddress(text: string, base: string): { variant: string } | { options: Options } {
  const trimmed = text.trim();
  const isWhole = trimmed.startsWith(base);
  if (!isWhole && trimmed.includes("/")) throw new Error(`expected an address that begins with ${base}`);
  const [segment = ""] = trimmed.slice(isWhole ? base.length : 0).split("?");
  if (segment === "") throw new Error("expected a variant, or options such as width=400");
  return segment.includes("=") ? { options: optionsIn(segment) } : { variant: decodeURIComponent(segment) };
}

const isNumber = (text: string): boolean => /^\d+(\.\d+)?$/.test(text);
const asValue = (text: string): string | number | boolean =>
  isNumber(text) ? Number(text) : text === "true" ? true : text === "false" ? false : text;

const given = (values: Options, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    names.filter((name) => (values[name] ?? "") !== "").map((name) => [name, asValue(values[name]!)]),
  );

/** The options of a variant, as the API takes them. */
export const variantJson = (values: Options): string =>
  JSON.stringify({ fit: "scale-down", metadata: "none", ...given(values, variantNames) }, null, 2);

/** The options in the JSON of a variant. Throws what is wrong with it. */
export function optionsInVariant(text: string): Options {
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new Error("expected an object with the options of a variant");
  const entries = Object.entries(parsed).filter(([name]) => name !== "browser_ttl");
  for (const [name] of entries) refuseUnknown(name, variantNames, "a variant");
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** The code of a script that fetches the picture with options. */
export const scriptCode = (address: string, values: Options): string => {
  const image = JSON.stringify(given(values, optionNames), null, 2).replaceAll("\n", "\n  ");
  return `return fetch(${JSON.stringify(address)}, {\n  cf: { image: ${image} },\n});`;
};

/** The options in the code of a script, or in an object of options alone. Throws what is wrong with it. */
export function optionsInScript(text: string): Options {
  const start = /\bimage\s*:\s*\{|^\s*\{/.exec(text);
  if (start === null) throw new Error("expected cf: { image: { … } }");
  const found: Record<string, string> = {};
  const from = start.index + start[0].length;
  const entry =
    /\s*(?:["']([\w-]+)["']|([\w-]+))\s*:\s*(?:"([^"]*)"|'([^']*)'|\{([^{}]*)\}|([\w.+-]+))\s*(,|(?=\}))/y;
  let at = (entry.lastIndex = from);
  for (let match = entry.exec(text); match !== null; match = entry.exec(text)) {
    at = entry.lastIndex;
    const [, quoted, bare, double, single, nested, word] = match;
    const name = shortNames[quoted ?? bare!] ?? quoted ?? bare!;
    refuseUnknown(name, optionNames, "this page");
    found[name] = nested === undefined ? (double ?? single ?? word!) : pointIn(nested, name);
  }
  if (!/^\s*\}/.test(text.slice(at)))
    throw new Error(`expected name: value but received “${text.slice(at).trim().slice(0, 20)}”`);
  return found;
}

/** `x: 0.2, y: 0.8` as it is in an address. */
function pointIn(text: string, name: string): string {
  const [x, y] = ["x", "y"].map(
    (axis) => new RegExp(`["']?\\b${axis}["']?\\s*:\\s*([\\d.]+)`).exec(text)?.[1],
  );
  if (name !== "gravity" || (x === undefined && y === undefined))
    throw new Error(`expected a text or a number for ${name}`);
  return `${x ?? 0.5}x${y ?? 0.5}`;
}
