import type { IncomingMessage, ServerResponse } from "node:http";
import { inputErrors } from "../../../platform/domain-error.ts";
import { parseBounded } from "../../../platform/util/bounded-json.ts";
import { parseTransform } from "../recipe/options.ts";
import { publicError, sendError } from "../delivery/respond.ts";
import { transformationErrors } from "./errors.ts";
import type { Send } from "../../../edge/origin/outbound.ts";
import type { PictureOwner } from "../../../workers/runtime/runtime-options.ts";
import { isOfTransformation } from "./fetch-original.ts";
import { sourceUrl, type TransformationRequest } from "./request.ts";
import type { Transformations } from "./transformations.ts";

const headers = ["Accept", "image/avif,image/webp,image/*", "User-Agent", "Selvedge"];

/**
 * Answers a script's fetch with `cf.image`: the picture at a URL, transformed. `image` is the options as
 * JSON. Invalid requests get a response with the public code, as for `/cdn-cgi/image/`; internal errors are
 * thrown.
 */
export async function answerScriptFetch(
  transformations: Transformations,
  owner: PictureOwner,
  { image, url, send }: { image: string; url: URL; send: Send },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  request.resume();
  try {
    const asked = readRequest(image, url, request);
    await transformations.answer(owner, asked, headers, send, request, response);
  } catch (error) {
    const shown = publicError(error);
    if (shown === undefined || response.headersSent || response.destroyed) throw error;
    await sendError(request, response, shown, "");
  }
}

function readRequest(
  image: string,
  url: URL,
  { method = "", headers: given }: IncomingMessage,
): Pick<TransformationRequest, "transform" | "source"> {
  if (isOfTransformation(given)) throw transformationErrors.loop();
  if (method !== "GET" && method !== "HEAD")
    throw inputErrors.invalid(`Expected GET or HEAD for a fetch with cf.image but received ${method}`);
  return { transform: parseTransform(parseBounded(image)), source: sourceUrl(url.href, url.origin) };
}
