import { z } from "zod";

/** Bytes in a document: as text if they are UTF-8, otherwise in base64. */
export const BytesSchema = z.union([
  z.strictObject({ text: z.string() }),
  z.strictObject({ base64: z.base64() }),
]);
export type Bytes = z.output<typeof BytesSchema>;

/** Bytes in the form of a document; `bytesOf` is the inverse. */
export function describeBytes(bytes: Uint8Array): Bytes {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { base64: Buffer.from(bytes).toString("base64") };
  }
}

export const bytesOf = (bytes: Bytes): Uint8Array<ArrayBuffer> =>
  "text" in bytes
    ? new TextEncoder().encode(bytes.text)
    : Uint8Array.from(Buffer.from(bytes.base64, "base64"));
