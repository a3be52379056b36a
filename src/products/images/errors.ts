import { defineErrors } from "../../platform/domain-error.ts";
import { isDiskFull } from "../../platform/storage/faults.ts";

export const imageErrors = defineErrors("images", {
  invalidFormat: (received: string, accepted = "JPEG, PNG, GIF or WebP") =>
    `Invalid format: expected a ${accepted} image but received ${received}`,
  invalidUpload: (message: string, pointer?: string) => ({ message: message, pointer }),
  tooLarge: (limitBytes: number) => `Too large: expected an image of at most ${limitBytes} bytes`,
  tooManyPixels: (why: string) => `Too large: ${why}`,
  invalidTransform: (why: string) => `Invalid transform: ${why}`,
  /** The only transform error that is the picture's own fault; it is cached. */
  undecodable: () => "Invalid transform: the image cannot be decoded: its data is damaged or incomplete",
  unavailable: () => ({
    message: "Images cannot be transformed at the moment. Try again",
    retryAfterSeconds: 5,
  }),
  notFound: (what = "Image") => `${what} not found`,
  uploadTooSlow: () => "The upload was too slow or stalled",
  aborted: () => "The client aborted the upload",
  exists: (what: string) => `${what} already exists. Verify the resource information and try again.`,
  notForm: (received: string) =>
    `Images must be uploaded as a form, not as raw image data. Expected multipart/form-data but received ${received}`,
  denied: (why: string) => `Image access denied: ${why}`,
  flexibleOff: () => "Transform options in URLs are disabled for this account: use a variant",
  busy: (retryAfterSeconds: number) => ({
    message: `Rate limit: too many images are waiting. Try again in ${retryAfterSeconds} seconds`,
    retryAfterSeconds,
  }),
  noRoom: () => ({ message: "The platform's disk has no space for this image", retryAfterSeconds: 60 }),
  tooLong: () => "The image took too long to transform",
});

/** Maps an error while writing an image: a full disk becomes a 507 instead of an internal error. */
export const ofWriting = (error: unknown): unknown => (isDiskFull(error) ? imageErrors.noRoom() : error);
