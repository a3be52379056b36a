import { z } from "zod";
import { estimate, type Cost } from "../engine/cost.ts";
import type { DrawOptions, Picture, TransformStep } from "../engine/job.ts";
import { imageErrors } from "../errors.ts";
import { parseTransform, type Transform } from "../recipe/options.ts";
import { planOutput, resolveTransform, uprightSize, type Output } from "../recipe/recipe.ts";
import type { Spooled } from "../input/spool.ts";

/** The order of a script: an image by number, its steps, and the output. */
export interface Order {
  root: Layer;
  output: Transform;
}
export interface Layer {
  image: number;
  steps: ({ transform: Transform } | { draw: Layer; options: DrawOptions })[];
}

export const compositionLimits = { imagesMax: 20, stepsMax: 100, depthMax: 8 } as const;

const drawFields = {
  top: z.int().optional(),
  left: z.int().optional(),
  bottom: z.int().optional(),
  right: z.int().optional(),
  opacity: z.number().min(0).max(1).optional(),
  repeat: z.union([z.boolean(), z.literal(["x", "y"])]).optional(),
  composite: z.enum(["over", "in", "atop", "out", "xor", "lighter"]).optional(),
};
const DrawSchema = z.strictObject(drawFields);
const StepsSchema = z.array(z.looseObject({}));
const LayerSchema = z.strictObject({ image: z.int().min(0), steps: StepsSchema });
const OrderSchema = z.strictObject({ root: z.looseObject({}), output: z.looseObject({}) });

/** Options of an output, parsed as options of a transform. */
const outputNames = ["format", "quality", "background", "anim"];

/** Parses and validates the order of a script, before any image is received. */
export function parseOrder(value: unknown): Order {
  const { root, output } = parsed(OrderSchema, value, "the job");
  const wrong = Object.keys(output).find((name) => !outputNames.includes(name));
  if (wrong !== undefined)
    throw imageErrors.invalidTransform(
      `expected the output options ${outputNames.join(", ")} but received ${JSON.stringify(wrong)}`,
    );
  const counts = { images: 0, steps: 0 };
  const order = { root: parseLayer(root, counts, 0), output: parseTransform(output) };
  if (order.output.format === "json")
    throw imageErrors.invalidTransform("format json is not available here: use info()");
  return order;
}

function parseLayer(value: unknown, counts: { images: number; steps: number }, depth: number): Layer {
  const { image, steps } = parsed(LayerSchema, value, "an image");
  const { imagesMax, stepsMax, depthMax } = compositionLimits;
  counts.images += 1;
  counts.steps += steps.length;
  if (counts.images > imagesMax || counts.steps > stepsMax || depth > depthMax)
    throw imageErrors.invalidTransform(
      `expected at most ${imagesMax} images, ${stepsMax} steps, and images drawn on each other ${depthMax} deep`,
    );
  return {
    image,
    steps: steps.map((step) => {
      if (!("draw" in step)) return { transform: parseStep(step["transform"]) };
      return { draw: parseLayer(step["draw"], counts, depth + 1), options: parseDraw(step["options"]) };
    }),
  };
}

function parseStep(value: unknown): Transform {
  const transform = parseTransform(value);
  if (transform.width === "auto") throw imageErrors.invalidTransform("width auto is not available here");
  if (transform.format === "json")
    throw imageErrors.invalidTransform("format json is not available here: use info()");
  return transform;
}

function parseDraw(value: unknown): DrawOptions {
  const { top, left, bottom, right, opacity, repeat, composite } = parsed(
    DrawSchema,
    value ?? {},
    "draw options",
  );
  if (left !== undefined && right !== undefined)
    throw imageErrors.invalidTransform("expected either left or right for draw but received both");
  if (top !== undefined && bottom !== undefined)
    throw imageErrors.invalidTransform("expected either top or bottom for draw but received both");
  return {
    ...(top === undefined ? {} : { top }),
    ...(left === undefined ? {} : { left }),
    ...(bottom === undefined ? {} : { bottom }),
    ...(right === undefined ? {} : { right }),
    ...(opacity === undefined ? {} : { opacity }),
    ...(repeat === undefined || repeat === false ? {} : { repeat }),
    ...(composite === undefined ? {} : { composite }),
  };
}

function parsed<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw imageErrors.invalidTransform(`${[what, ...path.map(String)].join(".")}: ${message}`);
}

export interface Composition {
  picture: Picture;
  output: Output;
  cost: Cost;
}

/** Combines an order with its images. */
export function compose(order: Order, images: readonly Spooled[]): Composition {
  const cost: Cost = { cpuMs: 0, memoryBytes: 0 };
  const warnings: string[] = [];
  const root = layerOf(order.root, images, cost);
  const { probe } = root.picture;
  const asked = { ...root.asked, ...order.output };
  const { output, isUntransformed } = planOutput(asked, probe, {
    accepted: { avif: false, webp: probe.format === "webp" },
    size: root.size,
    warnings,
  });
  if (isUntransformed) throw imageErrors.invalidTransform("the animation is too large to be transformed");
  const { picture } = root;
  if (order.output.background !== undefined) {
    const { transform } = resolveTransform({ background: order.output.background }, root.size, warnings);
    picture.steps.push({ kind: "transform", transform });
  }
  const { sizeBytes } = images[order.root.image]!;
  const { cpuMs, memoryBytes } = estimate({ ...probe, sizeBytes }, { transform: {}, output }, root.size);
  return {
    picture,
    output,
    cost: { cpuMs: cost.cpuMs + cpuMs, memoryBytes: cost.memoryBytes + memoryBytes },
  };
}

function layerOf(
  layer: Layer,
  images: readonly Spooled[],
  cost: Cost,
): { picture: Picture; size: { width: number; height: number }; asked: Transform } {
  const image = images[layer.image];
  if (image === undefined) throw imageErrors.invalidTransform(`there is no image ${layer.image}`);
  let size = uprightSize(image.probe);
  let asked: Transform = {};
  const steps: TransformStep[] = layer.steps.map((step) => {
    if ("draw" in step) {
      const overlay = layerOf(step.draw, images, cost);
      cost.memoryBytes += overlay.size.width * overlay.size.height * 4 + size.width * size.height * 4;
      cost.cpuMs += (image.probe.width * image.probe.height) / 1e5;
      return { kind: "draw", overlay: overlay.picture, options: step.options };
    }
    const { transform, size: after } = resolveTransform(step.transform, size, []);
    cost.cpuMs += (Math.max(size.width * size.height, after.width * after.height) / 1e6) * 20;
    size = after;
    const { format, quality, metadata, anim } = step.transform;
    // Output options of a step apply until a later step overrides them.
    asked = Object.fromEntries(
      Object.entries({ ...asked, format, quality, metadata, anim }).map(([name, value]) => [
        name,
        value ?? asked[name as keyof Transform],
      ]),
    ) as Transform;
    return { kind: "transform", transform };
  });
  return { picture: { path: image.path, probe: image.probe, steps, focus: null }, size, asked };
}
