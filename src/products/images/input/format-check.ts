import { imageErrors } from "../errors.ts";
import { imageLimits, type MoreFormats } from "../image.ts";
import { describeHead, sniff, sniffBytes } from "./probe.ts";

/**
 * Passes the bytes of an image on. Throws when the first bytes are of no accepted format, and as soon as the
 * file is too large.
 */
export async function* checkedImage(
  source: AsyncIterable<Uint8Array>,
  more: MoreFormats,
  onChunk?: (chunk: Uint8Array) => void,
): AsyncIterable<Uint8Array> {
  let head: Buffer | undefined = Buffer.alloc(0);
  let sizeBytes = 0;
  let bytesMax: number = imageLimits.fileBytesMax;
  for await (const chunk of source) {
    sizeBytes += chunk.length;
    if (sizeBytes > bytesMax) throw imageErrors.tooLarge(bytesMax);
    onChunk?.(chunk);
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < sniffBytes) continue;
    bytesMax = checkFormat(head, more);
    if (sizeBytes > bytesMax) throw imageErrors.tooLarge(bytesMax);
    yield head;
    head = undefined;
  }
  if (head === undefined) return;
  checkFormat(head, more);
  yield head;
}

/** The size limit of the detected format in bytes. Throws for formats that are not accepted. */
function checkFormat(head: Buffer, { avif, svg }: MoreFormats): number {
  const format = sniff(head);
  const isAccepted = format === "avif" ? avif : format === "svg" ? svg : format !== undefined;
  if (isAccepted) return format === "svg" ? imageLimits.svgBytesMax : imageLimits.fileBytesMax;
  const names = ["JPEG", "PNG", "GIF", "WebP", ...(avif ? ["AVIF"] : []), ...(svg ? ["SVG"] : [])];
  throw imageErrors.invalidFormat(describeHead(head), `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`);
}
