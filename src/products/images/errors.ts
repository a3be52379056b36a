import { ApiError } from "../../control/api/errors.ts";
import { isDiskFull } from "../../platform/storage/faults.ts";

/** Errors of images. Where a public code has another meaning, the specification decides. */
export const imageErrors = {
  invalidFormat: (received: string, accepted = "JPEG, PNG, GIF or WebP") =>
    new ApiError(400, 5400, `Invalid format: expected a ${accepted} image but received ${received}`),
  invalidUpload: (message: string, pointer?: string) => new ApiError(400, 5400, message, { pointer }),
  tooLarge: (limitBytes: number) =>
    new ApiError(413, 5401, `Too large: expected an image of at most ${limitBytes} bytes`),
  tooManyPixels: (why: string) => new ApiError(400, 5401, `Too large: ${why}`),
  invalidTransform: (why: string) => new ApiError(400, 5403, `Invalid transform: ${why}`),
  /** The only transform error that is the picture's own fault; it is cached. */
  undecodable: () =>
    new ApiError(
      422,
      5403,
      "Invalid transform: the image cannot be decoded: its data is damaged or incomplete",
    ),
  unavailable: () =>
    new ApiError(503, 9523, "Images cannot be transformed at the moment. Try again", {
      retryAfterSeconds: 5,
    }),
  notFound: (what = "Image") => new ApiError(404, 5404, `${what} not found`),
  uploadTooSlow: () => new ApiError(408, 5408, "The upload was too slow or stalled"),
  aborted: () => new ApiError(400, 5433, "The client aborted the upload"),
  exists: (what: string) =>
    new ApiError(409, 5409, `${what} already exists. Verify the resource information and try again.`),
  notForm: (received: string) =>
    new ApiError(
      400,
      5415,
      `Images must be uploaded as a form, not as raw image data. Expected multipart/form-data but received ${received}`,
    ),
  denied: (why: string) => new ApiError(403, 9425, `Image access denied: ${why}`),
  flexibleOff: () =>
    new ApiError(403, 9429, "Transform options in URLs are disabled for this account: use a variant"),
  busy: (retryAfterSeconds: number) =>
    new ApiError(
      429,
      9413,
      `Rate limit: too many images are waiting. Try again in ${retryAfterSeconds} seconds`,
      {
        retryAfterSeconds,
      },
    ),
  noRoom: () =>
    new ApiError(507, 5453, "The platform's disk has no space for this image", { retryAfterSeconds: 60 }),
  tooLong: () => new ApiError(504, 9529, "The image took too long to transform"),
};

/** Maps an error while writing an image: a full disk becomes a 507 instead of an internal error. */
export const ofWriting = (error: unknown): unknown => (isDiskFull(error) ? imageErrors.noRoom() : error);

/** The public code of a transform error, for the `cf-resized` header. */
export function resizedCode(error: ApiError): number {
  if (error.code === 5403) return error.status === 422 ? 9516 : 9401;
  if (error.code === 5404) return 9404;
  return error.code >= 9000 ? error.code : 9523;
}
