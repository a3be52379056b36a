import { DomainError } from "../../../platform/domain-error.ts";
import type { Focus } from "../image.ts";
import {
  beforeTurn,
  cropBox,
  layout,
  needsFocus,
  turned,
  type Box,
  type Layout,
  type Size,
} from "../recipe/geometry.ts";
import type { Transform } from "../recipe/options.ts";
import { checkResult, trimmedSize } from "../recipe/recipe.ts";
import { fillOf, type Canvas } from "./canvas.ts";
import { applyEffects } from "./effects.ts";
import { findFocus } from "./focus.ts";
import { InvalidForImage } from "./invalid.ts";
import { findBorder } from "./trim.ts";

interface Transformed {
  canvas: Canvas;
  /** The focus that was found in the whole picture, if any. */
  focus: Focus | null;
}

/** The geometry of a transform, fixed before its first step. */
interface Plan {
  options: Transform;
  rotate: number;
  /** The part that trimming keeps; undefined keeps all. */
  region: Box | undefined;
  layout: Layout;
  /** The scaled size before the rotation. */
  scaledBefore: Size;
}

/**
 * Applies one transform as a list of steps. The result is that of the documented order: trim, flip, rotate,
 * resize, background, colours, sharpen, blur, border. `known` is a focus that was found before.
 */
export async function transform(
  canvas: Canvas,
  options: Transform,
  known: Focus | null,
): Promise<Transformed> {
  const plan = await planOf(canvas, options);
  const trimmed = await trim(canvas, plan);
  const scaled = await trimmed.resize(plan.scaledBefore);
  const { canvas: cropped, focus } = await crop(scaled, plan, known);
  const upright = await cropped.turn(options.flip, plan.rotate);
  const extended = await extend(upright, plan);
  return { canvas: await applyEffects(extended, options), focus };
}

async function planOf(canvas: Canvas, options: Transform): Promise<Plan> {
  const region = await trimRegion(canvas, options);
  const { rotate = 0 } = options;
  const before: Size = region ?? canvas.size;
  const found = layout(
    turned(before, rotate),
    options as Partial<Size>, // plan() of recipe.ts has replaced "auto"
    options.fit ?? "scale-down",
  );
  checkSize(found.output, canvas.size);
  return { options, rotate, region, layout: found, scaledBefore: turned(found.scaled, rotate) };
}

const trim = async (canvas: Canvas, { region }: Plan): Promise<Canvas> =>
  region === undefined ? canvas : canvas.extract(region);

async function crop(canvas: Canvas, plan: Plan, known: Focus | null): Promise<Transformed> {
  const { options, rotate, region, layout: found, scaledBefore } = plan;
  if (found.crop === undefined) return { canvas, focus: null };
  let next = canvas;
  let focus: Focus | null = null;
  let point = known ?? undefined;
  if (needsFocus(found, options.gravity) && point === undefined) {
    next = await next.settle();
    point = await findFocus(next, options.gravity);
    // Only a focus of the whole picture is worth storing.
    if (options.gravity === "auto" && region === undefined) focus = point;
  }
  const turnedPoint = point && turnPoint(point, options.flip, rotate);
  const box = cropBox(
    found.scaled,
    zoomed(found.crop, found.scaled, options, turnedPoint),
    options.gravity,
    turnedPoint,
  );
  next = await next.extract(beforeTurn(box, scaledBefore, options.flip, rotate));
  if (box.width !== found.crop.width) next = await next.resize(turned(found.crop, rotate));
  return { canvas: next, focus };
}

async function extend(canvas: Canvas, { options, layout: found }: Plan): Promise<Canvas> {
  if (found.canvas === undefined) return canvas;
  const { width, height, left, top } = found.canvas;
  return canvas.extend(
    {
      left,
      top,
      right: width - left - found.scaled.width,
      bottom: height - top - found.scaled.height,
    },
    fillOf(options.background ?? "#ffffffff"),
  );
}

function invalidForImage(error: unknown): unknown {
  return error instanceof DomainError
    ? new InvalidForImage(error.message.replace(/^Invalid transform: /, ""))
    : error;
}

function checkSize(size: Size, source: Size): void {
  try {
    checkResult(size, source);
  } catch (error) {
    throw invalidForImage(error);
  }
}

async function trimRegion(canvas: Canvas, { trim }: Transform): Promise<Box | undefined> {
  if (trim === undefined) return undefined;
  if ("border" in trim) return findBorder(canvas, trim);
  try {
    return { left: trim.left, top: trim.top, ...trimmedSize(canvas.size, trim) };
  } catch (error) {
    throw invalidForImage(error);
  }
}

/** Converts a focus of the upright picture to coordinates after flip and rotation. */
function turnPoint({ x, y }: Focus, flip: Transform["flip"], rotate: number): Focus {
  if (flip === "h" || flip === "hv") x = 1 - x;
  if (flip === "v" || flip === "hv") y = 1 - y;
  if (rotate === 90) return { x: 1 - y, y: x };
  if (rotate === 180) return { x: 1 - x, y: 1 - y };
  return rotate === 270 ? { x: y, y: 1 - x } : { x, y };
}

/** A crop closer to the face: the whole crop at zoom 0, half of it at 1. */
function zoomed(crop: Size, scaled: Size, { gravity, zoom }: Transform, point: Focus | undefined): Size {
  if (gravity !== "face" || zoom === undefined || point === undefined) return crop;
  const factor = 1 - zoom / 2;
  return {
    width: Math.min(scaled.width, Math.max(1, Math.round(crop.width * factor))),
    height: Math.min(scaled.height, Math.max(1, Math.round(crop.height * factor))),
  };
}
