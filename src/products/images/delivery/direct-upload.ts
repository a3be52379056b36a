import type { EdgeHttpRequest } from "../../../edge/request/handlers.ts";
import { success } from "../../../control/api/envelope.ts";
import { imageErrors } from "../errors.ts";
import { readImageForm } from "../input/api-form.ts";
import type { Image } from "../image.ts";
import { noRoute } from "./respond.ts";
import { draftDefaults, type Uploads } from "../uploads.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The expiry of a draft, in epoch milliseconds. */
export function expiryOf(expiry: string | undefined, now = clock.now()): number {
  if (expiry === undefined) return now + draftDefaults.expiryMs;
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(expiry) ? Date.parse(expiry) : Number.NaN;
  if (time >= now + draftDefaults.expiryMsMin && time <= now + draftDefaults.expiryMsMax) return time;
  throw imageErrors.invalidUpload(
    `Expected a time from 2 minutes to 6 hours ahead for expiry but received ${JSON.stringify(expiry)}`,
    "/body/expiry",
  );
}

const cors = { "access-control-allow-origin": "*" };

/** Accepts the one upload of an uploadURL, without credentials, from any client. */
export async function takeDirectUpload(
  { request, response }: EdgeHttpRequest,
  token: string,
  uploads: Uploads,
  resource: (image: Image) => object,
): Promise<void> {
  if (request.method === "OPTIONS") {
    response
      .writeHead(204, {
        ...cors,
        "access-control-allow-methods": "POST, OPTIONS",
        "access-control-allow-headers": "*",
        "access-control-max-age": "86400",
      })
      .end();
    return;
  }
  if (request.method !== "POST") throw noRoute(request, "the upload URL");
  const draft = await uploads.draft(token);
  const { file } = await readImageForm(request, "ignored", uploads.intake(draft.accountId));
  if (file === undefined) throw imageErrors.invalidUpload("Expected a part named file", "/body/file");
  const image = await uploads.complete(draft, file.filename, file.content);
  const body = JSON.stringify(success(resource(image)));
  response.writeHead(200, {
    ...cors,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(body);
}
