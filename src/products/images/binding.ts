import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { streamParts } from "../../control/api/multipart.ts";
import { ApiError, callerError } from "../../control/api/errors.ts";
import { parseBounded } from "../../platform/util/bounded-json.ts";
import { throwInScript, type BindingCall, type BindingHandler } from "../../workers/binding.ts";
import { compose, compositionLimits, parseOrder, type Order } from "./results/compose.ts";
import type { ImageEngine } from "./engine/engine.ts";
import { imageErrors } from "./errors.ts";
import { pictureErrorCodes } from "./api-errors.ts";
import { contentTypes, imageLimits } from "./image.ts";
import { uprightSize } from "./recipe/recipe.ts";
import type { UploadSpool, Spooled } from "./input/spool.ts";

const orderBytesMax = 256 * 1024;

/** Serves the calls of a script's images binding. */
export const imagesBinding =
  ({ engine, spool }: { engine: ImageEngine; spool: UploadSpool }): BindingHandler<"images"> =>
  async (call) => {
    const isInfo = call.url.pathname === "/info";
    try {
      if (isInfo) await answerInfo(spool, call);
      else await answerTransform(engine, spool, call);
    } catch (error) {
      const shown = callerError(error, pictureErrorCodes);
      if (!(shown instanceof ApiError)) throw error;
      call.request.resume();
      const kind = isInfo ? "IMAGES_INFO_ERROR" : "IMAGES_TRANSFORM_ERROR";
      throwInScript(call.response, {
        name: "ImagesError",
        message: `${kind} ${shown.code}: ${shown.message}`,
        code: shown.code,
      });
    }
  };

async function answerInfo(
  spool: UploadSpool,
  { caller: { accountId }, request, response }: BindingCall<"images">,
): Promise<void> {
  // When the request is refused midway, its body is drained instead of destroyed, which would block the
  // connection.
  const bytes = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  const { probe, sizeBytes } = await spool.use(accountId, (receive) => receive(bytes));
  const body = JSON.stringify({
    format: contentTypes[probe.format],
    fileSize: sizeBytes,
    ...uprightSize(probe),
  });
  response.writeHead(200, { "content-type": "application/json" }).end(body);
}

async function answerTransform(
  engine: ImageEngine,
  spool: UploadSpool,
  { caller: { accountId }, request, response }: BindingCall<"images">,
): Promise<void> {
  await spool.use(accountId, async (receive) => {
    const { order, images } = await readForm(request, receive);
    const { picture, output, cost } = compose(order, images);
    const left = new AbortController();
    response.once("close", () => left.abort(new Error("the script has left")));
    const job = { picture, output, target: undefined };
    const { bytes } = await engine.run(job, { accountId, cost }, left.signal);
    response
      .writeHead(200, { "content-type": `image/${output.format}`, "content-length": bytes!.length })
      .end(bytes);
  });
}

/**
 * Reads a form with the order first and then the images by number, so that a wrong order is refused before
 * the images arrive.
 */
async function readForm(
  request: IncomingMessage,
  receive: (source: Readable) => Promise<Spooled>,
): Promise<{ order: Order; images: Spooled[] }> {
  let order: Order | undefined;
  const images: Spooled[] = [];
  const limits = {
    bodyBytesMax: (imageLimits.fileBytesMax + 1024) * compositionLimits.imagesMax,
    partBytesMax: orderBytesMax,
    partsMax: compositionLimits.imagesMax + 1,
  };
  await streamParts(request, limits, async (head, stream) => {
    if (head.name === "order") order = parseOrder(await jsonOf(stream));
    else if (order === undefined) throw imageErrors.invalidTransform("expected the order before the images");
    else images.push(await receive(stream));
  });
  if (order === undefined) throw imageErrors.invalidTransform("expected an order but received none");
  return { order, images };
}

async function jsonOf(stream: Readable): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > orderBytesMax) throw imageErrors.invalidTransform("the options are too long");
    chunks.push(chunk);
  }
  try {
    return parseBounded(Buffer.concat(chunks).toString());
  } catch {
    throw imageErrors.invalidTransform("expected an order in JSON");
  }
}
