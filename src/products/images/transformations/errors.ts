import { ApiError } from "../../../control/api/errors.ts";

/**
 * Errors of transforming a picture of an origin, in the public numbering of `/cdn-cgi/image/`
 * (developers.cloudflare.com/images/reference/errors).
 */
export const transformationErrors = {
  notAllowed: (host: string) =>
    new ApiError(
      403,
      9401,
      `Pictures of ${host} may not be transformed here: add the host to the zone's setting transformations_allowed_origins`,
    ),
  noSource: () =>
    new ApiError(
      400,
      9401,
      "Expected /cdn-cgi/image/<options>/<source> with comma-separated name=value options",
    ),
  invalidUrl: (why: string) =>
    new ApiError(403, 9406, `Could not fetch the image: the URL is invalid: ${why}`),
  loop: () => new ApiError(508, 9403, "The source is a transformed image, which would cause a loop"),
  busy: () =>
    new ApiError(503, 9522, "Too many pictures are being fetched for this zone. Try again", {
      retryAfterSeconds: 1,
    }),
  notFound: () => new ApiError(404, 9404, "Could not fetch the image: the origin answered 404 Not Found"),
  refused: (status: number) =>
    new ApiError(status, 9408, `Could not fetch the image: the origin answered with status ${status}`),
  originFault: (status: number) =>
    new ApiError(502, 9509, `Could not fetch the image: the origin answered with status ${status}`),
  unreachable: () => new ApiError(502, 9504, "Could not fetch the image: the origin could not be reached"),
  broken: () => new ApiError(502, 9402, "Could not fetch the image: the origin aborted the transfer"),
  tooSlow: (seconds: number) =>
    new ApiError(504, 9504, `Could not fetch the image: it took longer than ${seconds} seconds`),
  badRedirect: () => new ApiError(400, 9420, "Could not fetch the image: it redirects to an invalid URL"),
  redirects: (max: number) =>
    new ApiError(400, 9421, `Could not fetch the image: it redirects more than ${max} times`),
  notImage: (why: string) =>
    new ApiError(415, 9412, `Could not transform the image: the origin did not send one: ${why}`),
  tooLarge: (why: string) => new ApiError(413, 9402, `Could not fetch the image: ${why}`),
  tooManyPixels: (why: string) => new ApiError(403, 9413, `Could not transform the image: ${why}`),
};

/**
 * Maps an error of receiving a picture to its code under `/cdn-cgi/image/`, which differs from the code for
 * uploads.
 */
export function asTransformationError(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  if (error.code === 5400) return transformationErrors.notImage(error.message);
  if (error.code === 5401)
    return error.status === 413
      ? transformationErrors.tooLarge(error.message)
      : transformationErrors.tooManyPixels(error.message);
  return error;
}
