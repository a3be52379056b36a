import type { BlobFile, Blobs } from "../../../platform/storage/blobs.ts";
import { BlobMissing } from "../../../platform/storage/faults.ts";
import { SourceGone } from "../engine/engine.ts";

/** The file of an image for the engine. Rejects with `SourceGone` if the image has no content. */
export const sourceFile = async (blobs: Blobs, blobKey: string): Promise<BlobFile> =>
  blobs.file(blobKey).catch((error: unknown) => {
    throw error instanceof BlobMissing ? new SourceGone("the image has no content", { cause: error }) : error;
  });
