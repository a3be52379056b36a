import { join } from "node:path";
import type { Logger } from "pino";
import type { Accounts } from "../../control/accounts/accounts.ts";
import type { AddressPolicy } from "../../edge/origin/address-policy.ts";
import type { EdgeHttpRequest } from "../../edge/request/handlers.ts";
import type { Send, Sender } from "../../edge/origin/outbound.ts";
import type { Blobs } from "../../platform/storage/blobs.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { Delivery } from "./delivery/delivery.ts";
import { takeDirectUpload } from "./delivery/direct-upload.ts";
import { accountHash, ImageDirectory } from "./directory.ts";
import { ImageEngine, type ImageEngineOptions } from "./engine/engine.ts";
import type { Image, MoreFormats } from "./image.ts";
import { Images } from "./images.ts";
import { MadeResults } from "./results/made-results.ts";
import { CopyPlan } from "./results/copy-plan.ts";
import { IntermediateCopies } from "./results/intermediate-copies.ts";
import { resultFolder } from "./recipe/recipe.ts";
import { imageResource } from "./resource.ts";
import { Results } from "./results/results.ts";
import { ImageSettingsService, variantsOf } from "./settings/settings.ts";
import { UploadSpool } from "./input/spool.ts";
import { Originals } from "./transformations/originals.ts";
import { TransformedPictures } from "./transformations/transformed-pictures.ts";
import { Transformations, type TransformationSettings } from "./transformations/transformations.ts";
import { ResultMaker } from "./results/result-maker.ts";
import { Uploads } from "./uploads.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

export { accountHash } from "./directory.ts";

export interface ImagesOptions {
  storage: Storage;
  accounts: Accounts;
  blobs: Blobs;
  policy: AddressPolicy;
  logger: Logger;
  /** For results that can be made again. */
  cacheFolder: string;
  memoryBytesMax: number;
  diskBytesMax: number;
  /** Longest side of intermediate copies in pixels; 0 disables them. */
  intermediateCopySidePixels: number;
  /** The delivery URL for visitors, when it is not the edge's own address. */
  deliveryUrl: string | undefined;
  moreFormats: MoreFormats;
  /** The transformation settings of a zone: which pictures may be transformed under its `/cdn-cgi/image/`. */
  transformationSettings: (zoneId: string) => TransformationSettings;
  /** Fetches pictures of hosts other than the visitor's. */
  send: (...request: [...Parameters<Send>, sender: Sender]) => Promise<void>;
  engine?: Partial<Omit<ImageEngineOptions, "logger">>;
}

const sweepIntervalMs = 60_000;

function sweepRegularly(uploads: Uploads, logger: Logger): NodeJS.Timeout {
  const timer = setInterval(() => {
    unawaited(
      uploads.sweep().catch((error: unknown) => logger.warn({ err: error }, "sweeping images failed")),
    );
  }, sweepIntervalMs);
  return timer.unref();
}

/** The services of images. */
export class ImagesService {
  readonly stored: Images;
  readonly uploads: Uploads;
  readonly settings: ImageSettingsService;
  readonly delivery: Delivery;
  readonly transformations: Transformations;
  readonly originals: Originals;
  readonly engine: ImageEngine;
  readonly results: Results;
  readonly spool: UploadSpool;
  readonly policy: AddressPolicy;
  readonly #directory: ImageDirectory;
  readonly #sweeper: NodeJS.Timeout;
  #deliveryUrl: string;

  constructor(options: ImagesOptions) {
    const { storage, blobs, logger, moreFormats } = options;
    this.policy = options.policy;
    this.#deliveryUrl = options.deliveryUrl?.replace(/\/$/, "") ?? "";
    this.#directory = new ImageDirectory(storage, options.accounts);
    this.spool = new UploadSpool(join(options.cacheFolder, "image-inputs"), {
      ...moreFormats,
      svg: false, // only raster images can be drawn on
    });
    this.engine = new ImageEngine({ ...options.engine, logger });
    const results = new Results({
      folder: join(options.cacheFolder, "images"),
      memoryBytesMax: options.memoryBytesMax,
      diskBytesMax: options.diskBytesMax,
      logger,
    });
    const intermediateCopies = new IntermediateCopies({
      plan: new CopyPlan(options.intermediateCopySidePixels),
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
    this.results = results;
    const made = new MadeResults(results, logger);
    this.originals = new Originals(results, join(options.cacheFolder, "image-originals"), moreFormats);
    this.transformations = new Transformations({
      originals: this.originals,
      results: new TransformedPictures(this.engine, results, made),
      logger,
      settings: options.transformationSettings,
      send: options.send,
    });
    this.delivery = new Delivery({
      directory: this.#directory,
      resultMaker: new ResultMaker({
        directory: this.#directory,
        engine: this.engine,
        results,
        made,
        intermediateCopies,
        blobs,
        logger,
        saveFocus: (image, focus) => this.stored.setFocus(image, focus),
      }),
      intermediateCopies,
      blobs,
      logger,
      url: options.deliveryUrl === undefined ? undefined : new URL(options.deliveryUrl),
      upload: (edgeRequest, token) => this.#takeDirectUpload(edgeRequest, token),
    });
    this.#sweeper = sweepRegularly(this.uploads, logger);
  }

  get deliveryUrl(): string {
    return this.#deliveryUrl;
  }

  /** Sets the address of the edge, which is the delivery URL unless another is configured. */
  listensAt(url: string): void {
    this.#deliveryUrl ||= url;
  }

  /** Formats an account's images for the API. */
  async shown(accountId: string): Promise<(image: Image) => ReturnType<typeof imageResource>> {
    const ids = variantsOf(await this.#directory.settings(accountId)).map(({ id }) => id);
    const base = `${this.#deliveryUrl}/${accountHash(accountId)}`;
    return (image) => imageResource(image, base, ids);
  }

  async #takeDirectUpload(edgeRequest: EdgeHttpRequest, token: string): Promise<void> {
    const { accountId } = await this.uploads.draft(token);
    await takeDirectUpload(edgeRequest, token, this.uploads, await this.shown(accountId));
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.results.close();
    await this.engine.close();
  }
}
