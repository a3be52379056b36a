import type { Blobs } from "../../platform/storage/blobs.ts";
import { isBlobsUnavailable } from "../../platform/storage/faults.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { unwitnessed } from "../../platform/storage/witness.ts";
import { imageErrors } from "./errors.ts";
import { isStorable, type Focus, type Image } from "./image.ts";
import { matchesMetadata, type MetadataFilter } from "./metadata-filter.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

/** Rows that a filtered list reads at a time. */
const scanRows = 500;

/** The stored images of accounts. */
export class Images {
  readonly #storage: Storage;
  readonly #blobs: Blobs;
  readonly #onDelete: (image: Image) => Promise<void>;

  constructor(storage: Storage, blobs: Blobs, onDelete: (image: Image) => Promise<void>) {
    this.#storage = storage;
    this.#blobs = blobs;
    this.#onDelete = onDelete;
  }

  async find(accountId: string, id: string): Promise<Image> {
    const image = isStorable(id) ? await store.find(this.#storage.read, accountId, id) : undefined;
    const hasExpired = image?.content === null && image.draft!.expiresOn <= clock.now();
    if (image === undefined || hasExpired) throw imageErrors.notFound();
    return image;
  }

  async count(accountId: string): Promise<number> {
    return store.count(this.#storage.read, accountId);
  }

  async page(
    accountId: string,
    query: { creator?: string | null | undefined; page: number; perPage: number },
  ): Promise<{ images: Image[]; totalCount: number }> {
    const range = { creator: query.creator, offset: (query.page - 1) * query.perPage, limit: query.perPage };
    const [images, totalCount] = await Promise.all([
      store.page(this.#storage.read, accountId, range),
      store.count(this.#storage.read, accountId, query.creator),
    ]);
    return { images, totalCount };
  }

  /** A page of the list after a cursor, and the cursor of the next page. */
  async list(
    accountId: string,
    query: {
      creator?: string | null | undefined;
      order: "asc" | "desc";
      filters: readonly MetadataFilter[];
      cursor?: store.ListCursor | undefined;
      limit: number;
    },
  ): Promise<{ images: Image[]; next: store.ListCursor | undefined }> {
    const images: Image[] = [];
    let { cursor } = query;
    for (;;) {
      const limit = query.filters.length === 0 ? query.limit + 1 : scanRows;
      const rows = await store.after(this.#storage.read, accountId, { ...query, cursor, limit });
      for (const image of rows) {
        if (!matchesMetadata(image.meta, query.filters)) continue;
        if (images.length === query.limit) return { images, next: cursorOf(images.at(-1)!) };
        images.push(image);
      }
      if (rows.length < limit) return { images, next: undefined };
      cursor = cursorOf(rows.at(-1)!);
    }
  }

  async edit(accountId: string, id: string, edit: store.ImageEdit): Promise<Image> {
    await this.find(accountId, id);
    return this.#storage.write(async (trx, noteChange) => {
      const image = await store.edit(trx, accountId, id, edit);
      if (image === undefined) throw imageErrors.notFound();
      noteChange({ kind: "image", id, parentId: accountId });
      return image;
    });
  }

  /** Stores the focus of an image. Nothing else changes, so no change event is sent. */
  async setFocus(image: Image, focus: Focus): Promise<void> {
    await this.#storage.write((trx) => store.setFocus(trx, image, focus));
  }

  async delete(accountId: string, id: string): Promise<void> {
    await this.find(accountId, id);
    const image = await this.#storage.write(async (trx, noteChange) => {
      const removed = await store.remove(trx, accountId, id);
      if (removed === undefined) throw imageErrors.notFound();
      // If this process dies before the bytes are deleted, the sweep deletes them.
      if (removed.content !== null) await store.noteOrphan(trx, removed.content.blobKey, 0);
      noteChange({ kind: "image", id, parentId: accountId });
      return removed;
    });
    if (image.content === null) return;
    await this.#onDelete(image);
    const { blobKey } = image.content;
    try {
      await this.#blobs.delete(blobKey);
    } catch (error) {
      if (isBlobsUnavailable(error)) return; // the sweep deletes them
      throw error;
    }
    await this.#storage.write((trx) => store.forgetOrphan(trx, blobKey), unwitnessed);
  }
}

const cursorOf = ({ uploadedOn, id }: Image): store.ListCursor => ({ uploadedOn, id });
