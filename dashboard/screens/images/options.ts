type PictureOption = { name: string; values: readonly string[] } | { name: string; hint?: string };

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
    ],
  },
  {
    title: "Crop",
    options: [
      { name: "gravity", values: ["auto", "face", "center", "left", "right", "top", "bottom", "entropy"] },
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
    ],
  },
];

export const optionNames: readonly string[] = groups.flatMap(({ options }) =>
  options.map(({ name }) => name),
);

/** The part of the address with the options: "width=600,fit=cover". */
export const optionsText = (values: Readonly<Record<string, string>>): string =>
  optionNames
    .filter((name) => values[name] !== "")
    .map((name) => `${name}=${encodeURIComponent(values[name]!)}`)
    .join(",");
