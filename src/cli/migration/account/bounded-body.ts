import { MigrationError } from "../failure.ts";

/** Reads a body. Throws MigrationError, and stops reading, when it is larger than allowed. */
export async function readBounded(response: Response, bytesMax: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > bytesMax) {
      await response.body?.cancel().catch(() => {});
      throw new MigrationError(`${response.url} was answered with more than ${bytesMax} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts, bytes);
}
