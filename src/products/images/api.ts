import { Readable } from "node:stream";
import { z } from "zod";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { pictureErrorCodes } from "./api-errors.ts";
import { settingsOperations } from "./settings/api-settings.ts";
import { uploadOperations } from "./api-uploads.ts";
import { blobHeaders } from "./delivery/delivery.ts";
import { BlobMissing } from "../../platform/storage/faults.ts";
import { imageErrors } from "./errors.ts";
import { checkCreator, checkMetadata, imageLimits, isStorable } from "./image.ts";
import { parseMetadataFilters } from "./metadata-filter.ts";
import { formatCursor, parseCursor } from "./cursor.ts";
import { ImageSchema } from "./resource.ts";
import type { Blobs } from "../../platform/storage/blobs.ts";
import type { ImagesService } from "./image-services.ts";

/** The services that these operations use. */
interface Services {
  blobs: Blobs;
  images: ImagesService;
}

const { operation, rawOperation } = operationsFor<Services>(pictureErrorCodes);

const base = "/accounts/{account_id}/images";
const read = { scope: "account", permission: "images:read" } as const;
const edit = { scope: "account", permission: "images:edit" } as const;
function idOf({ params }: Call<unknown, unknown, Services>): string {
  const id = params["image_id"]!;
  // The public service issues batch tokens at this path. No image has this id.
  if (id === "batch_token")
    throw imageErrors.notFound(
      "batch_token is not available: an API token does as well; an image of this id was",
    );
  return id;
}

const perPage = z.coerce.number().int().min(1).max(10_000);
/** An empty creator selects images without one. */
const creatorQuery = z
  .string()
  .refine(isStorable, "expected no NUL")
  .optional()
  .transform((creator) => (creator === "" ? null : creator));
const ListSchema = z.object({ images: z.array(ImageSchema) });

export const imageOperations = [
  ...uploadOperations,
  ...settingsOperations,
  operation({
    id: "image_list",
    method: "GET",
    path: `${base}/v1`,
    summary: "List images by page, the newest first",
    access: read,
    query: z.object({
      page: z.coerce.number().int().min(1).max(1_000_000_000).default(1),
      per_page: perPage.default(100),
      creator: creatorQuery,
    }),
    // The official client reads `items` to find the last page; people read `images`.
    result: ListSchema.extend({ items: z.array(ListSchema) }),
    async handle(call) {
      const { query, account, services } = call;
      const { images, totalCount } = await services.images.stored.page(account.id, {
        creator: query.creator,
        page: query.page,
        perPage: query.per_page,
      });
      const shown = images.map(await services.images.shown(account.id));
      call.resultInfo = {
        page: query.page,
        per_page: query.per_page,
        count: shown.length,
        total_count: totalCount,
        total_pages: Math.ceil(totalCount / query.per_page),
      };
      return { images: shown, items: shown.length === 0 ? [] : [{ images: shown }] };
    },
  }),
  operation({
    id: "image_list_v2",
    method: "GET",
    path: `${base}/v2`,
    summary: "List images with a continuation token, optionally filtered by metadata",
    access: read,
    query: z.looseObject({
      per_page: perPage.default(1000),
      sort_order: z.enum(["asc", "desc"]).default("desc"),
      continuation_token: z.string().max(4096).optional(),
      creator: creatorQuery,
    }),
    result: ListSchema.extend({ continuation_token: z.string().nullable() }),
    async handle({ query, account, services }) {
      const { per_page, sort_order, continuation_token, creator, ...rest } = query;
      const token = continuation_token === "" ? undefined : continuation_token;
      const { images, next } = await services.images.stored.list(account.id, {
        creator,
        order: sort_order,
        filters: parseMetadataFilters(rest),
        cursor: token === undefined ? undefined : parseCursor(token, account.id),
        limit: per_page,
      });
      return {
        images: images.map(await services.images.shown(account.id)),
        continuation_token: next === undefined ? null : formatCursor(next, account.id),
      };
    },
  }),
  operation({
    id: "image_get",
    method: "GET",
    path: `${base}/v1/{image_id}`,
    summary: "Get an image's details",
    access: read,
    result: ImageSchema,
    async handle(call) {
      const { images } = call.services;
      const image = await images.stored.find(call.account.id, idOf(call));
      return (await images.shown(call.account.id))(image);
    },
  }),
  operation({
    id: "image_edit",
    method: "PATCH",
    path: `${base}/v1/{image_id}`,
    summary: "Change an image's metadata, creator, or whether its URLs must be signed",
    access: edit,
    body: z.strictObject({
      metadata: z.record(z.string(), z.unknown()).optional(),
      requireSignedURLs: z.boolean().optional(),
      creator: z.string().nullable().optional(),
    }),
    result: ImageSchema,
    async handle(call) {
      const { account, body, services } = call;
      const image = await services.images.stored.edit(account.id, idOf(call), {
        meta: body.metadata === undefined ? undefined : checkMetadata(body.metadata),
        requireSignedUrls: body.requireSignedURLs,
        creator: typeof body.creator === "string" ? checkCreator(body.creator) : body.creator,
      });
      return (await services.images.shown(account.id))(image);
    },
  }),
  operation({
    id: "image_delete",
    method: "DELETE",
    path: `${base}/v1/{image_id}`,
    summary: "Delete an image and all results made from it",
    access: edit,
    result: z.object({}),
    async handle(call) {
      await call.services.images.stored.delete(call.account.id, idOf(call));
      return {};
    },
  }),
  rawOperation({
    id: "image_blob",
    method: "GET",
    path: `${base}/v1/{image_id}/blob`,
    summary: "Get the original bytes of an image",
    access: read,
    async handle(call) {
      const { services, account } = call;
      const { content, filename, uploadedOn } = await services.images.stored.find(account.id, idOf(call));
      if (content === null) throw imageErrors.notFound();
      const blob = await services.blobs.get(content.blobKey);
      if (blob === undefined) {
        await services.images.stored.find(account.id, idOf(call)); // throws if it was deleted in the meantime
        throw new BlobMissing(content.blobKey);
      }
      return new Response(Readable.toWeb(blob.stream) as ReadableStream, {
        headers: {
          ...blobHeaders(content.format, filename),
          "content-length": String(content.sizeBytes),
          "last-modified": new Date(uploadedOn).toUTCString(),
          etag: `"${content.sha256.slice(0, 32)}"`,
        },
      });
    },
  }),
  operation({
    id: "image_stats",
    method: "GET",
    path: `${base}/v1/stats`,
    summary: "Count the account's images",
    access: read,
    result: z.object({ count: z.object({ current: z.int(), allowed: z.int() }) }),
    handle: async ({ account, services }) => ({
      count: {
        current: await services.images.stored.count(account.id),
        allowed: imageLimits.imagesPerAccountMax,
      },
    }),
  }),
];
