import { z } from "zod";
import { operationsFor, type Operation } from "../../control/api/operation.ts";
import { pictureErrorCodes } from "./api-errors.ts";
import { expiryOf } from "./delivery/direct-upload.ts";
import { imageErrors } from "./errors.ts";
import { readImageFields, readImageForm, type ImageForm } from "./input/api-form.ts";
import { cleanFilename, type ImageContent } from "./image.ts";
import { fetchRemote } from "./input/remote.ts";
import { ImageSchema } from "./resource.ts";
import type { Intake } from "./uploads.ts";
import type { AddressPolicy } from "../../edge/origin/address-policy.ts";
import type { ImagesService } from "./image-services.ts";
import { sensitive } from "../../control/api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  images: ImagesService;
}

const { operation } = operationsFor<Services>(pictureErrorCodes);

const base = "/accounts/{account_id}/images";
const edit = { scope: "account", permission: "images:edit" } as const;

const FieldsSchema = z.strictObject({
  id: z.string().optional().meta({ description: "Custom id; generated when absent" }),
  metadata: z.unknown().meta({ description: "JSON text, or one form field for each value: metadata[name]" }),
  requireSignedURLs: z.boolean().optional(),
  creator: z.string().optional(),
});

/** The content of the uploaded file, or of the image at `url`. */
async function contentOf(
  { file, url }: ImageForm,
  intake: Intake,
  policy: AddressPolicy,
): Promise<{ filename: string; content: ImageContent }> {
  if (file !== undefined && url === undefined) return file;
  if (file !== undefined) {
    await intake.discard(file.content.blobKey);
    throw imageErrors.invalidUpload("Expected either file or url but received both", "/body");
  }
  if (url === undefined)
    throw imageErrors.invalidUpload("Expected a part named file, or url, but received neither", "/body");
  return fetchRemote(url, policy, async (body, filename) => ({
    filename: cleanFilename(filename),
    content: await intake.receive(body),
  }));
}

const createDirectUpload = (id: string, path: string): Operation<Services> =>
  operation({
    id,
    method: "POST",
    path,
    summary: "Create a URL that accepts one image upload without credentials",
    access: edit,
    bodyKind: "own",
    bodyOptional: true,
    acceptAnyContentType: true,
    body: FieldsSchema.extend({ expiry: z.string().optional().meta({ format: "date-time" }) }),
    result: z.object({ id: z.string(), uploadURL: z.string() }),
    async handle({ account, incoming, services }) {
      const names = ["id", "metadata", "requireSignedURLs", "creator", "expiry"] as const;
      const { expiry, url: _none, ...fields } = await readImageFields(incoming, names);
      const { image, token } = await services.images.uploads.createDraft(
        { accountId: account.id, filename: "", ...fields },
        expiryOf(expiry),
      );
      return { id: image.id, uploadURL: `${services.images.deliveryUrl}/upload/${token}` };
    },
  });

export const uploadOperations = [
  operation({
    id: "image_upload",
    method: "POST",
    path: `${base}/v1`,
    summary: "Upload an image, or let the platform fetch it from a URL",
    access: edit,
    bodyKind: "own",
    acceptAnyContentType: true,
    body: FieldsSchema.extend({
      file: z.string().optional().meta({ format: "binary" }),
      url: sensitive(z.string().meta({ format: "uri" })).optional(),
    }),
    result: ImageSchema,
    async handle({ account, incoming, services }) {
      const { uploads, policy } = services.images;
      const names = ["id", "url", "metadata", "requireSignedURLs", "creator"] as const;
      const intake = uploads.intake(account.id);
      const form = await readImageForm(incoming, names, intake);
      const { filename, content } = await contentOf(form, intake, policy);
      const { id, meta, requireSignedUrls, creator } = form;
      const input = { accountId: account.id, id, filename, meta, requireSignedUrls, creator };
      const image = await uploads.create(input, content);
      return (await services.images.shown(account.id))(image);
    },
  }),
  createDirectUpload("image_direct_upload", `${base}/v2/direct_upload`),
  createDirectUpload("image_direct_upload_v1", `${base}/v1/direct_upload`),
];
