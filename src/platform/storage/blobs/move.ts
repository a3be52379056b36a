import type { Blobs } from "../blobs.ts";

/** The result of a move of blobs. */
export interface Moved {
  copied: number;
  copiedBytes: number;
  /** Blobs that an earlier, interrupted move had copied. */
  skipped: number;
}

const copiesAtOnce = 4;

/**
 * Copies all blobs that the target does not have. May be interrupted and repeated, because each blob at the
 * target is complete.
 */
export async function moveBlobs(
  source: Blobs,
  target: Blobs,
  progress: (moved: Moved) => void,
): Promise<Moved> {
  const moved: Moved = { copied: 0, copiedBytes: 0, skipped: 0 };
  const listed = source.list()[Symbol.asyncIterator]();
  const work = async (): Promise<void> => {
    for (let next = await listed.next(); next.done !== true; next = await listed.next()) {
      const { key, sizeBytes } = next.value;
      if ((await target.head(key))?.sizeBytes === sizeBytes) {
        moved.skipped += 1;
        continue;
      }
      const blob = await source.get(key);
      if (blob === undefined) continue; // deleted in the meantime
      const { sizeBytes: copiedBytes } = await target
        .put(key, blob.stream)
        .finally(() => blob.stream.destroy());
      moved.copied += 1;
      moved.copiedBytes += copiedBytes;
      progress(moved);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: copiesAtOnce }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return moved;
}
