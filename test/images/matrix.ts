import sharp from "sharp";
import { painted } from "./fixtures.ts";
import { raster, type ImagePlatform } from "./platform.ts";

/**
 * Source format × fit × gravity × output format. Each picture encodes its coordinates: red grows to the
 * right, green to the bottom. So the colours at the corners and in the middle of a result show which part of
 * the source they came from. They are compared with the arithmetic of fit and gravity, which is implemented
 * here independently from the documentation.
 */
export const sourceFormats = ["jpeg", "progressive jpeg", "exif jpeg", "png", "gif", "webp"] as const;
export const fitNames = [
  "scale-down",
  "contain",
  "cover",
  "crop",
  "pad",
  "squeeze",
  "scale-up",
  "aspect-crop",
] as const;
export const gravities = ["center", "left", "right", "top", "bottom", "0x0", "1x0.25"] as const;
export const outputs = ["jpeg", "png", "webp", "avif", "gif"] as const;
type SourceFormat = (typeof sourceFormats)[number];
type FitName = (typeof fitNames)[number];

export interface Combination {
  source: SourceFormat;
  fit: FitName;
  gravity: (typeof gravities)[number];
  output: (typeof outputs)[number];
}

const [sourceWidth, sourceHeight] = [240, 160];
const boxes: Record<FitName, readonly [number, number]> = {
  "scale-down": [100, 100],
  contain: [300, 300],
  cover: [100, 100],
  crop: [90, 120],
  pad: [120, 120],
  squeeze: [90, 110],
  "scale-up": [400, 400],
  "aspect-crop": [300, 100],
};

const isCropping = (fit: FitName): boolean => fit === "cover" || fit === "crop" || fit === "aspect-crop";

/** All combinations; gravity only when it matters. */
export function combinations(): Combination[] {
  return sourceFormats.flatMap((source) =>
    fitNames.flatMap((fit) =>
      (isCropping(fit) ? gravities : gravities.slice(0, 1)).flatMap((gravity) =>
        outputs.map((output) => ({ source, fit, gravity, output })),
      ),
    ),
  );
}

const shade = (x: number, y: number): readonly number[] => [
  Math.round((x / (sourceWidth - 1)) * 255),
  Math.round((y / (sourceHeight - 1)) * 255),
  128,
];

export async function sourceImage(format: SourceFormat): Promise<Buffer> {
  const image = await painted(sourceWidth, sourceHeight, shade);
  const jpeg = { quality: 98, chromaSubsampling: "4:4:4" };
  switch (format) {
    case "jpeg":
      return image.jpeg(jpeg).toBuffer();
    case "progressive jpeg":
      return image.jpeg({ ...jpeg, progressive: true }).toBuffer();
    case "exif jpeg":
      return image.rotate(270).withMetadata({ orientation: 6 }).jpeg(jpeg).toBuffer();
    case "png":
      return image.png().toBuffer();
    case "gif":
      return image.gif({ colours: 256, dither: 0 }).toBuffer();
    case "webp":
      return image.webp({ lossless: true }).toBuffer();
  }
}

interface Expected {
  width: number;
  height: number;
  /** The visible part of the source, in its own pixels. */
  shown: { left: number; top: number; width: number; height: number };
  /** Its position in the result. */
  place: { left: number; top: number; width: number; height: number };
}

/** The documented effect of `fit` and `gravity`, in fractions. */
export function expected({ fit, gravity }: Combination): Expected {
  const [w, h] = boxes[fit];
  const [sw, sh] = [sourceWidth, sourceHeight];
  const [small, large] = [Math.min(w / sw, h / sh), Math.max(w / sw, h / sh)];
  const whole = { left: 0, top: 0, width: sw, height: sh };
  const scaled = (k: number): Expected => {
    const [width, height] = [Math.round(sw * k), Math.round(sh * k)];
    return { width, height, shown: whole, place: { left: 0, top: 0, width, height } };
  };
  if (fit === "scale-down") return scaled(Math.min(1, small));
  if (fit === "contain") return scaled(small);
  if (fit === "scale-up") return scaled(Math.max(1, small));
  if (fit === "squeeze")
    return { width: w, height: h, shown: whole, place: { left: 0, top: 0, width: w, height: h } };
  if (fit === "pad") {
    const { width, height } = scaled(small);
    return {
      width: w,
      height: h,
      shown: whole,
      place: { left: (w - width) / 2, top: (h - height) / 2, width, height },
    };
  }
  const k = fit === "cover" ? large : Math.min(1, large);
  let [width, height] = [w, h];
  if (fit === "aspect-crop" && large > 1)
    [width, height] = w / h > sw / sh ? [sw, Math.round((sw * h) / w)] : [Math.round((sh * w) / h), sh];
  const names: Record<string, readonly [number, number]> = {
    center: [0.5, 0.5],
    left: [0, 0.5],
    right: [1, 0.5],
    top: [0.5, 0],
    bottom: [0.5, 1],
  };
  const [x, y] = names[gravity] ?? (gravity.split("x").map(Number) as [number, number]);
  const shown = {
    left: (sw - width / k) * x,
    top: (sh - height / k) * y,
    width: width / k,
    height: height / k,
  };
  return { width, height, shown, place: { left: 0, top: 0, width, height } };
}

const tolerance: Record<Combination["output"], number> = { jpeg: 10, png: 7, webp: 12, avif: 12, gif: 30 };

/** The fault of a combination's result; undefined when it is correct. */
export async function check(
  platform: ImagePlatform,
  id: string,
  combination: Combination,
): Promise<string | undefined> {
  const { source, fit, gravity, output } = combination;
  const [w, h] = boxes[fit];
  const options = `w=${w},h=${h},fit=${fit}${output === "png" ? "" : ",q=95"},f=${output}${isCropping(fit) ? `,gravity=${gravity}` : ""}`;
  const { status, headers, bytes } = await platform.deliver(id, options);
  if (status !== 200) return `${status}: ${bytes.toString()}`;
  if (headers.get("content-type") !== `image/${output}`) return `it is ${headers.get("content-type")}`;
  const { format } = await sharp(bytes).metadata();
  if ((format === "heif" ? "avif" : format) !== output) return `its bytes are ${format}`;
  const { width, height, at } = await raster(bytes);
  const wanted = expected(combination);
  if (width !== wanted.width || height !== wanted.height)
    return `${width}×${height} instead of ${wanted.width}×${wanted.height}`;
  const off = tolerance[output] + (source === "gif" ? 25 : 0);
  for (const [u, v] of [
    [0.1, 0.1],
    [0.9, 0.1],
    [0.5, 0.5],
    [0.1, 0.9],
    [0.9, 0.9],
  ] as const) {
    const { shown, place } = wanted;
    const pixel = at(place.left + u * place.width, place.top + v * place.height);
    const from = shade(shown.left + u * shown.width, shown.top + v * shown.height);
    const worst = Math.max(...from.map((value, i) => Math.abs(value - pixel[i]!)));
    if (worst > off) return `at ${u}, ${v} it is ${pixel.join()} instead of ${from.join()}`;
  }
  if (fit === "pad") {
    const corner = at(1, 1);
    if (corner.slice(0, 3).some((value) => value < 250))
      return `its edge is ${corner.join()} instead of white`;
  }
  return undefined;
}
