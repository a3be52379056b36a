import type { ErrorCodes } from "../../control/api/errors.ts";
import type { imageErrors } from "./errors.ts";
import type { transformationErrors } from "./transformations/errors.ts";

/** The specification decides if a public code has another meaning. */
export const imageErrorCodes: ErrorCodes<typeof imageErrors> = {
  "images.invalidFormat": [400, 5400],
  "images.invalidUpload": [400, 5400],
  "images.tooLarge": [413, 5401],
  "images.tooManyPixels": [400, 5401],
  "images.invalidTransform": [400, 5403],
  "images.undecodable": [422, 5403],
  "images.unavailable": [503, 9523],
  "images.notFound": [404, 5404],
  "images.uploadTooSlow": [408, 5408],
  "images.aborted": [400, 5433],
  "images.exists": [409, 5409],
  "images.notForm": [400, 5415],
  "images.denied": [403, 9425],
  "images.flexibleOff": [403, 9429],
  "images.busy": [429, 9413],
  "images.noRoom": [507, 5453],
  "images.tooLong": [504, 9529],
};

/** The public numbering of `/cdn-cgi/image/` (developers.cloudflare.com/images/reference/errors). */
export const transformationErrorCodes: ErrorCodes<typeof transformationErrors> = {
  "transformations.notAllowed": [403, 9401],
  "transformations.noSource": [400, 9401],
  "transformations.invalidUrl": [403, 9406],
  "transformations.loop": [508, 9403],
  "transformations.busy": [503, 9522],
  "transformations.notFound": [404, 9404],
  "transformations.refused": ["origin", 9408],
  "transformations.originFault": [502, 9509],
  "transformations.unreachable": [502, 9504],
  "transformations.broken": [502, 9402],
  "transformations.tooSlow": [504, 9504],
  "transformations.badRedirect": [400, 9420],
  "transformations.redirects": [400, 9421],
  "transformations.notImage": [415, 9412],
  "transformations.tooLarge": [413, 9402],
  "transformations.tooManyPixels": [403, 9413],
};

/** The codes of every error while a picture is delivered. */
export const pictureErrorCodes: ErrorCodes = { ...imageErrorCodes, ...transformationErrorCodes };
