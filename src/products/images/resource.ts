import { z } from "zod";
import { isoTime } from "../../platform/util/ids.ts";
import type { Image } from "./image.ts";

export const ImageSchema = z
  .object({
    id: z.string(),
    filename: z.string(),
    uploaded: z.string().meta({ format: "date-time" }),
    requireSignedURLs: z.boolean(),
    variants: z.array(z.string()),
    meta: z.record(z.string(), z.unknown()),
    creator: z.string().nullable(),
    draft: z.literal(true).optional().meta({ description: "Only while a direct upload is pending" }),
  })
  .meta({ id: "Image", description: "A stored image" });

/** The image in the form of the API. `base` is the delivery URL with the account's hash. */
export const imageResource = (
  image: Image,
  base: string,
  variantIds: readonly string[],
): z.input<typeof ImageSchema> => ({
  id: image.id,
  filename: image.filename,
  uploaded: isoTime(image.uploadedOn),
  requireSignedURLs: image.requireSignedUrls,
  variants: variantIds.map((variant) => `${base}/${pathOf(image.id)}/${variant}`),
  meta: image.meta,
  creator: image.creator,
  ...(image.content === null ? { draft: true as const } : {}),
});

/** An id as part of a path: slashes stay, and characters with a special meaning are escaped. */
export const pathOf = (id: string): string =>
  id
    .split("/")
    .map((part) => encodeURIComponent(part))
    .join("/");
