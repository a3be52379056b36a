import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { streamParts } from "../api/multipart.ts";
import { ApiError } from "../api/errors.ts";
import { throwInScript, type BindingCall, type BindingHandler } from "../runtime/binding.ts";
import { compose, compositionLimits, parseOrder, type Order } from "./compose.ts";
import type { Engine } from "./engine/engine.ts";
import { imageErrors } from "./errors.ts";
import { contentTypes, imageLimits } from "./image.ts";
import { uprightSize } from "./recipe.ts";
import type { Spool, Spooled } from "./spool.ts";

const orderBytesMax = 256 * 1024;

/** What a script does through its images binding. */
export const imagesBinding =
  ({ engine, spool }: { engine: Engine; spool: Spool }): BindingHandler<"images"> =>
  async (call) => {
    const isInfo = call.url.pathname === "/info";
    try {
      if (isInfo) await answerInfo(spool, call);
      else await answerTransform(engine, spool, call);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      call.request.resume();
      const kind = isInfo ? "IMAGES_INFO_ERROR" : "IMAGES_TRANSFORM_ERROR";
      throwInScript(call.response, {
        name: "ImagesError",
        message: `${kind} ${error.code}: ${error.message}`,
        code: error.code,
      });
    }
  };

async function answerInfo(spool: Spool, { request, response }: BindingCall<"images">): Promise<void> {
  // Refused in the middle, the body is dropped and not destroyed: that would block the connection.
  const bytes = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  const { probe, sizeBytes } = await spool.use((receive) => receive(bytes));
  const body = JSON.stringify({
    format: contentTypes[probe.format],
    fileSize: sizeBytes,
    ...uprightSize(probe),
  });
  response.writeHead(200, { "content-type": "application/json" }).end(body);
}

async function answerTransform(
  engine: Engine,
  spool: Spool,
  { request, response }: BindingCall<"images">,
): Promise<void> {
  await spool.use(async (receive) => {
    const { order, images } = await readForm(request, receive);
    const { picture, output, cost } = compose(order, images);
    const left = new AbortController();
    response.once("close", () => left.abort(new Error("the script has left")));
    const { bytes } = await engine.run({ picture, output, target: undefined }, cost, left.signal);
    response
      .writeHead(200, { "content-type": `image/${output.format}`, "content-length": bytes!.length })
      .end(bytes);
  });
}

/** The order comes first, then the images by their numbers: what is wrong with it is known before they are there. */
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
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw imageErrors.invalidTransform("expected an order in JSON");
  }
}
