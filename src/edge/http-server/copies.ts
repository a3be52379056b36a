/** The size of a read, so that each part of a body fits. */
const bufferBytes = 64 * 1024;
/** Buffers that are kept: 4 MiB. Visitors who read slowly make more of them, for a while. */
const keptMax = 64;
const free: Buffer[] = [];

/** A copy of bytes, and the function to call once it is not used any more. */
export interface BytesCopy {
  bytes: Buffer;
  release: (() => void) | undefined;
}

/**
 * Copies bytes into a buffer that is used again. New buffers for a large body would be memory outside of V8's heap, for
 * which V8 collects the whole heap again and again.
 */
export function copyOf(bytes: Buffer): BytesCopy {
  if (bytes.length > bufferBytes) return { bytes: Buffer.from(bytes), release: undefined };
  const buffer = free.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
  bytes.copy(buffer);
  const release = (): void => {
    if (free.length < keptMax) free.push(buffer);
  };
  return { bytes: buffer.subarray(0, bytes.length), release };
}
