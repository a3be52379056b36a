import type { Box } from "../recipe/geometry.ts";
import type { TrimBorder } from "../recipe/options.ts";
import type { Canvas } from "./canvas.ts";
import { InvalidForImage } from "./invalid.ts";

/** The box inside the border: up to the first pixel on each side that differs from the border colour. */
export async function findBorder(canvas: Canvas, { border }: TrimBorder): Promise<Box> {
  const { width, height } = canvas.size;
  let found: Box;
  try {
    const { info } = await canvas.image
      .clone()
      .trim({
        threshold: border.tolerance,
        ...(border.color === undefined ? {} : { background: border.color }),
      })
      .raw()
      .toBuffer({ resolveWithObject: true });
    found = {
      left: -(info.trimOffsetLeft ?? 0),
      top: -(info.trimOffsetTop ?? 0),
      width: info.width,
      height: info.height,
    };
  } catch (error) {
    if (/trim/i.test((error as Error).message)) throw new InvalidForImage("trim leaves nothing of the image");
    throw error;
  }
  const left = Math.max(0, found.left - border.keep);
  const top = Math.max(0, found.top - border.keep);
  return {
    left,
    top,
    width: Math.min(width, found.left + found.width + border.keep) - left,
    height: Math.min(height, found.top + found.height + border.keep) - top,
  };
}
