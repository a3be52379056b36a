import type { OutputInfo, Sharp } from "sharp";
import type { Focus } from "../image.ts";
import { fromPixels, toPixels, type Canvas, type Pixels } from "./canvas.ts";
import { mostSalient } from "./salience.ts";

/** In pixels of the examined picture. */
export interface Face {
  left: number;
  top: number;
  width: number;
  height: number;
}
/** The function `detect` of a face detector module. The picture is RGB with three bytes per pixel. */
export type FaceDetector = (rgb: Uint8Array, width: number, height: number) => Face[] | Promise<Face[]>;

let detector: Promise<FaceDetector | undefined> | undefined;
const faceDetector = (): Promise<FaceDetector | undefined> => {
  const module = process.env["FACE_DETECTOR"];
  detector ??=
    module === undefined
      ? Promise.resolve(undefined)
      : (import(module) as Promise<{ detect: FaceDetector }>).then(({ detect }) => detect);
  return detector;
};

/**
 * Longer side of the examined picture in pixels: salience is visible at small sizes, where it is cheap to
 * compute.
 */
const proxyPixels = 64;
const facePixels = 640;

/** The point that a crop should keep. Without a face, the most salient point. */
export async function findFocus(canvas: Canvas, gravity: "auto" | "face" | "entropy"): Promise<Focus> {
  const detect = gravity === "face" ? await faceDetector() : undefined;
  if (detect !== undefined) {
    const seen = await look(canvas, facePixels, (image) => image.flatten({ background: "#fff" }));
    const faces = seen.channels === 3 ? await facesIn(detect, seen) : [];
    if (faces.length > 0) return centreOf(faces, seen.width, seen.height);
  }
  if (gravity === "entropy") return busiest(await look(canvas, proxyPixels, (image) => image));
  const proxy = await look(canvas, proxyPixels, (image) => image.ensureAlpha());
  const { x, y } = mostSalient(proxy.data, proxy.width, proxy.height);
  return { x: share(x, 1), y: share(y, 1) };
}

async function facesIn(detect: FaceDetector, { data, width, height }: Pixels): Promise<Face[]> {
  try {
    return await detect(data, width, height);
  } catch (error) {
    // A detector failure is internal, while other failures here are the picture's fault.
    throw new TypeError(`the face detector failed: ${String(error)}`, { cause: error });
  }
}

/** Scales the picture to fit a box of this size. */
async function look(canvas: Canvas, boxPixels: number, prepare: (image: Sharp) => Sharp): Promise<Pixels> {
  const image = canvas.source.frames === 1 ? canvas.image.clone() : fromPixels(await firstFrame(canvas));
  return toPixels(prepare(image.resize({ width: boxPixels, height: boxPixels, fit: "inside" })));
}

async function firstFrame(canvas: Canvas): Promise<Pixels> {
  const { data, ...whole } = await canvas.pixels();
  const { frames } = canvas.source;
  return { ...whole, data: data.subarray(0, data.length / frames), height: whole.height / frames };
}

/** Crops to half of a side without scaling, so that the crop's offset is in pixels of the picture. */
async function busiest(picture: Pixels): Promise<Focus> {
  const across = await halved(picture, true);
  const down = await halved(picture, false);
  return {
    x: share(across.width / 2 - (across.cropOffsetLeft ?? 0), picture.width),
    y: share(down.height / 2 - (down.cropOffsetTop ?? 0), picture.height),
  };
}

async function halved(picture: Pixels, isAcross: boolean): Promise<OutputInfo> {
  const { width, height } = picture;
  const box = isAcross ? { width: Math.ceil(width / 2), height } : { width, height: Math.ceil(height / 2) };
  const image = fromPixels(picture).resize({ ...box, fit: "cover", position: "entropy" });
  return (await image.raw().toBuffer({ resolveWithObject: true })).info;
}

function centreOf(faces: readonly Face[], width: number, height: number): Focus {
  const left = Math.min(...faces.map((face) => face.left));
  const top = Math.min(...faces.map((face) => face.top));
  const right = Math.max(...faces.map((face) => face.left + face.width));
  const bottom = Math.max(...faces.map((face) => face.top + face.height));
  return { x: share((left + right) / 2, width), y: share((top + bottom) / 2, height) };
}

/** Rounded to hundredths, the precision of the salience map. */
const share = (value: number, whole: number): number =>
  Math.min(1, Math.max(0, Math.round((value / whole) * 100) / 100));
