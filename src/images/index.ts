import { join } from "node:path";
import type { Logger } from "pino";
import type { Accounts } from "../accounts/accounts.ts";
import type { AddressPolicy } from "../edge/address-policy.ts";
import type { FileBlobs } from "../storage/blobs.ts";
import type { Storage } from "../storage/storage.ts";
import { Delivery } from "./delivery.ts";
import { takeDirectUpload } from "./direct-upload.ts";
import { accountHash, Directory } from "./directory.ts";
import { Engine, type EngineOptions } from "./engine/engine.ts";
import type { Image, MoreFormats } from "./image.ts";
import { Images } from "./images.ts";
import { Mezzanines } from "./mezzanines.ts";
import { resultFolder } from "./recipe.ts";
import { imageResource } from "./resource.ts";
import { Results } from "./results.ts";
import { ImageSettingsService, variantsOf } from "./settings.ts";
import { Spool } from "./spool.ts";
import { Transforms } from "./transforms.ts";
import { Uploads } from "./uploads.ts";

export { accountHash } from "./directory.ts";

export interface ImagesOptions {
  storage: Storage;
  accounts: Accounts;
  blobs: FileBlobs;
  policy: AddressPolicy;
  logger: Logger;
  /** For what can be made again. */
  cacheFolder: string;
  memoryBytesMax: number;
  diskBytesMax: number;
  /** Longest side of the smaller copies of large images; 0 makes none. */
  mezzanineSidePixels: number;
  /** What visitors know as the delivery URL, where it is not the edge's own address. */
  deliveryUrl: string | undefined;
  moreFormats: MoreFormats;
  engine?: Partial<Omit<EngineOptions, "logger">>;
}

const sweepIntervalMs = 60_000;

/** Everything about images, put together. */
export class ImagesService {
  readonly stored: Images;
  readonly uploads: Uploads;
  readonly settings: ImageSettingsService;
  readonly delivery: Delivery;
  readonly engine: Engine;
  readonly #results: Results;
  readonly spool: Spool;
  readonly policy: AddressPolicy;
  readonly #directory: Directory;
  readonly #sweeper: NodeJS.Timeout;
  #deliveryUrl: string;

  constructor(options: ImagesOptions) {
    const { storage, blobs, logger, moreFormats } = options;
    this.policy = options.policy;
    this.#deliveryUrl = options.deliveryUrl?.replace(/\/$/, "") ?? "";
    this.#directory = new Directory(storage, options.accounts);
    this.spool = new Spool(join(options.cacheFolder, "image-inputs"), {
      ...moreFormats,
      svg: false, // nothing can be drawn on what is not made of pixels
    });
    this.engine = new Engine({ ...options.engine, logger });
    const results = (this.#results = new Results({
      folder: join(options.cacheFolder, "images"),
      memoryBytesMax: options.memoryBytesMax,
      diskBytesMax: options.diskBytesMax,
      logger,
    }));
    const mezzanines = new Mezzanines({
      sidePixels: options.mezzanineSidePixels,
      engine: this.engine,
      results,
      blobs,
      logger,
    });
    this.stored = new Images(storage, blobs, async ({ content }) => {
      if (content !== null) await results.purge(resultFolder(content.blobKey));
    });
    this.uploads = new Uploads(storage, blobs, logger, moreFormats);
    this.settings = new ImageSettingsService(storage, this.#directory);
    this.delivery = new Delivery({
      directory: this.#directory,
      transforms: new Transforms({
        engine: this.engine,
        results,
        mezzanines,
        blobs,
        logger,
        saveFocus: (image, focus) => this.stored.setFocus(image, focus),
      }),
      mezzanines,
      blobs,
      logger,
      url: options.deliveryUrl === undefined ? undefined : new URL(options.deliveryUrl),
      upload: async (visit, token) => {
        const { accountId } = await this.uploads.draft(token);
        const show = await this.shown(accountId);
        await takeDirectUpload(visit, token, this.uploads, show);
      },
    });
    this.#sweeper = setInterval(() => {
      this.uploads.sweep().catch((error: unknown) => logger.warn({ err: error }, "sweeping images failed"));
    }, sweepIntervalMs);
    this.#sweeper.unref();
  }

  get deliveryUrl(): string {
    return this.#deliveryUrl;
  }

  /** Where the edge listens; that is the delivery URL unless another is set. */
  listensAt(url: string): void {
    this.#deliveryUrl ||= url;
  }

  /** How an account's images are shown by the API. */
  async shown(accountId: string): Promise<(image: Image) => ReturnType<typeof imageResource>> {
    const ids = variantsOf(await this.#directory.settings(accountId)).map(({ id }) => id);
    const base = `${this.#deliveryUrl}/${accountHash(accountId)}`;
    return (image) => imageResource(image, base, ids);
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#results.close();
    await this.engine.close();
  }
}
