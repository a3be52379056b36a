import { imageErrors } from "./errors.ts";
import { imageLimits } from "./image.ts";
import { describeHead, sniff, sniffBytes } from "./probe.ts";

/** Passes bytes on as long as they can be an image: refuses what is none with its first bytes, and what is too large at once. */
export async function* screened(
  source: AsyncIterable<Uint8Array>,
  onChunk?: (chunk: Uint8Array) => void,
): AsyncIterable<Uint8Array> {
  let head: Buffer | undefined = Buffer.alloc(0);
  let sizeBytes = 0;
  for await (const chunk of source) {
    sizeBytes += chunk.length;
    if (sizeBytes > imageLimits.fileBytesMax) throw imageErrors.tooLarge(imageLimits.fileBytesMax);
    onChunk?.(chunk);
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < sniffBytes) continue;
    if (sniff(head) === undefined) throw imageErrors.invalidFormat(describeHead(head));
    yield head;
    head = undefined;
  }
  if (head === undefined) return;
  if (sniff(head) === undefined) throw imageErrors.invalidFormat(describeHead(head));
  yield head;
}
