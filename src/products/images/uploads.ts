import { createHash, randomBytes, randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { Blobs } from "../../platform/storage/blobs.ts";
import { writeNaming } from "../../platform/storage/blobs/write-with-content.ts";
import { isUniqueViolation, onOneNode } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { unwitnessed } from "../../platform/storage/witness.ts";
import { isId } from "../../platform/util/ids.ts";
import { imageErrors, ofWriting } from "./errors.ts";
import { checkSize, imageLimits, type ImageContent, type Image, type MoreFormats } from "./image.ts";
import { probe } from "./input/probe.ts";
import { checkedImage } from "./input/format-check.ts";
import * as store from "./store.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface NewImage {
  accountId: string;
  id: string | undefined;
  filename: string;
  requireSignedUrls: boolean;
  meta: Record<string, unknown>;
  creator: string | null;
}

export const draftDefaults = { expiryMs: 30 * 60_000, expiryMsMin: 2 * 60_000, expiryMsMax: 6 * 3_600_000 };
/**
 * Recount interval of an account's images, and the age at which blobs without a record count as leftovers
 * instead of running uploads.
 */
const countMs = 60_000;
const orphanAgeMs = 24 * 3_600_000;

export interface Intake {
  receive(source: AsyncIterable<Uint8Array>): Promise<ImageContent>;
  discard(blobKey: string): Promise<void>;
}

/** Receives the bytes of images and creates their records. Every record has its bytes. */
export class Uploads {
  readonly #storage: Storage;
  readonly #blobs: Blobs;
  readonly #logger: Logger;
  readonly #more: MoreFormats;
  readonly #imagesMax: number;
  readonly #counts = new LRUCache<string, Promise<{ images: number }>>({ ...entriesMax(1000), ttl: countMs });

  constructor(
    storage: Storage,
    blobs: Blobs,
    logger: Logger,
    more: MoreFormats,
    imagesMax: number = imageLimits.imagesPerAccountMax,
  ) {
    this.#storage = storage;
    this.#blobs = blobs;
    this.#logger = logger;
    this.#more = more;
    this.#imagesMax = imagesMax;
  }

  /**
   * Streams an image to storage. Refuses files of no accepted format by their first bytes, and too large
   * files at once.
   */
  async receive(accountId: string, source: AsyncIterable<Uint8Array>): Promise<ImageContent> {
    const name = randomUUID();
    const blobKey = `images/${accountId}/${name.slice(0, 2)}/${name}`;
    await this.#storage.write((trx) => store.noteOrphan(trx, blobKey, clock.now()), unwitnessed);
    const hash = createHash("sha256");
    try {
      const { sizeBytes } = await this.#blobs.put(
        blobKey,
        checkedImage(source, this.#more, (chunk) => hash.update(chunk)),
      );
      const file = await this.#blobs.file(blobKey);
      const found = await probe(file.path).finally(file.release);
      checkSize(found);
      return { ...found, blobKey, sha256: hash.digest("hex"), sizeBytes };
    } catch (error) {
      await this.discard(blobKey);
      throw ofWriting(error);
    }
  }

  /** Receives the images of an account. */
  intake(accountId: string): Intake {
    return {
      receive: (source) => this.receive(accountId, source),
      discard: (blobKey) => this.discard(blobKey),
    };
  }

  /** Deletes received bytes that do not become an image. */
  async discard(blobKey: string): Promise<void> {
    await this.#blobs.delete(blobKey);
    await this.#storage.write((trx) => store.forgetOrphan(trx, blobKey), unwitnessed);
  }

  async create(input: NewImage, content: ImageContent): Promise<Image> {
    return this.#insert(input, null, content);
  }

  /** Creates a draft and the token for its one upload. */
  async createDraft(input: NewImage, expiresOn: number): Promise<{ image: Image; token: string }> {
    const token = randomBytes(24).toString("base64url");
    const image = await this.#insert(input, { expiresOn, tokenHash: hashOf(token) }, null);
    return { image, token };
  }

  /** Finds the draft of a token. */
  async draft(token: string): Promise<Image> {
    const draft = await store.findDraft(this.#storage.read, hashOf(token));
    if (draft?.content != null) throw imageErrors.exists("The upload of this image");
    if (draft === undefined || draft.draft!.expiresOn <= clock.now()) throw imageErrors.notFound("Upload");
    return draft;
  }

  /** Adds bytes to a draft. The first of concurrent uploads wins. */
  async complete(draft: Image, filename: string, content: ImageContent): Promise<Image> {
    const image = await this.#storage.write(async (trx, changed) => {
      const done = await store.complete(trx, draft, { filename, content, uploadedOn: clock.now() });
      if (done !== undefined) await store.forgetOrphan(trx, content.blobKey);
      changed({ kind: "image", id: draft.id, parentId: draft.accountId });
      return done;
    });
    if (image !== undefined) return image;
    await this.discard(content.blobKey);
    const left = await store.find(this.#storage.read, draft.accountId, draft.id);
    throw left === undefined
      ? imageErrors.notFound("Upload")
      : imageErrors.exists("The upload of this image");
  }

  /** Removes expired drafts, unreferenced bytes, and files of crashed writers. */
  async sweep(now = clock.now()): Promise<void> {
    await this.#blobs.removeAbandoned(now - orphanAgeMs);
    await onOneNode(this.#storage, "images", () => this.#sweep(now));
  }

  async #sweep(now: number): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      for (const { accountId, id } of await store.removeExpired(trx, now))
        changed({ kind: "image", id, parentId: accountId });
    });
    for (const blobKey of await store.orphans(this.#storage.read, now - orphanAgeMs)) {
      this.#logger.info({ blob: blobKey }, "removing bytes that no image names");
      await this.discard(blobKey);
    }
    // An account's records are deleted with it; its bytes are deleted here.
    for (const accountId of await this.#blobs.folders("images")) {
      if (isId(accountId) && !(await store.hasAccount(this.#storage.read, accountId)))
        await this.#blobs.deleteFolder(`images/${accountId}`);
    }
  }

  async #insert(input: NewImage, draft: Image["draft"], content: ImageContent | null): Promise<Image> {
    const image: Image = {
      ...input,
      id: input.id ?? randomUUID(),
      uploadedOn: clock.now(),
      draft,
      content,
      focus: null,
    };
    const discard = async (): Promise<void> => {
      if (content !== null) await this.discard(content.blobKey);
    };
    try {
      await this.#checkCount(image.accountId);
    } catch (error) {
      await discard();
      throw error;
    }
    await writeNaming(this.#storage, discard, async (trx, changed) => {
      await store.insert(trx, image);
      if (content !== null) await store.forgetOrphan(trx, content.blobKey);
      changed({ kind: "image", id: image.id, parentId: image.accountId });
    }).catch((error: unknown) => {
      throw isUniqueViolation(error) ? imageErrors.exists("Resource") : error;
    });
    return image;
  }

  /** Counting takes time proportional to the images, so a recent count plus new images is used. */
  async #checkCount(accountId: string): Promise<void> {
    let counted = this.#counts.get(accountId);
    if (counted === undefined) {
      counted = store.count(this.#storage.read, accountId).then((images) => ({ images }));
      this.#counts.set(accountId, counted);
      unawaited(counted.catch(() => this.#counts.delete(accountId)));
    }
    const count = await counted;
    if (count.images >= this.#imagesMax)
      throw imageErrors.invalidUpload(`Expected at most ${this.#imagesMax} images in an account`);
    count.images += 1;
  }
}

const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");
