import { defineErrors, DomainError } from "../../../platform/domain-error.ts";

/** Errors of transforming a picture of an origin. */
export const transformationErrors = defineErrors("transformations", {
  notAllowed: (host: string) =>
    `Pictures of ${host} may not be transformed here: add the host to the zone's setting transformations_allowed_origins`,
  noSource: () => "Expected /cdn-cgi/image/<options>/<source> with comma-separated name=value options",
  invalidUrl: (why: string) => `Could not fetch the image: the URL is invalid: ${why}`,
  loop: () => "The source is a transformed image, which would cause a loop",
  busy: () => ({
    message: "Too many pictures are being fetched for this zone or its account. Try again",
    retryAfterSeconds: 1,
  }),
  notFound: () => "Could not fetch the image: the origin answered 404 Not Found",
  refused: (originStatus: number) => ({
    message: `Could not fetch the image: the origin answered with status ${originStatus}`,
    originStatus,
  }),
  originFault: (status: number) => `Could not fetch the image: the origin answered with status ${status}`,
  unreachable: () => "Could not fetch the image: the origin could not be reached",
  broken: () => "Could not fetch the image: the origin aborted the transfer",
  tooSlow: (seconds: number) => `Could not fetch the image: it took longer than ${seconds} seconds`,
  badRedirect: () => "Could not fetch the image: it redirects to an invalid URL",
  redirects: (max: number) => `Could not fetch the image: it redirects more than ${max} times`,
  notImage: (why: string) => `Could not transform the image: the origin did not send one: ${why}`,
  tooLarge: (why: string) => `Could not fetch the image: ${why}`,
  tooManyPixels: (why: string) => `Could not transform the image: ${why}`,
});

/** Maps an error of receiving an upload to the one of transforming, whose public code differs. */
export function asTransformationError(error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  switch (error.kind) {
    case "images.invalidFormat":
    case "images.invalidUpload":
      return transformationErrors.notImage(error.message);
    case "images.tooLarge":
      return transformationErrors.tooLarge(error.message);
    case "images.tooManyPixels":
      return transformationErrors.tooManyPixels(error.message);
    default:
      return error;
  }
}
