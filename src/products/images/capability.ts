import { join } from "node:path";
import { capability } from "../../capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { zoneSettings } from "../../control/zone-settings/capability.ts";
import type { ZoneSettings } from "../../control/zone-settings/zone-settings.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { blobs, dataFolder, storage } from "../../platform/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { answeredInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { imageOperations } from "./api.ts";
import { imagesBinding, imagesType } from "./binding.ts";
import { toMain } from "../../edge/processes/capability.ts";
import { blobUrlOf } from "../../platform/open-blobs.ts";
import { partOfNode } from "../../platform/processes/part-of-node.ts";
import { AnsweredElsewhere, Delivery, type DeliveryOptions } from "./delivery/delivery.ts";
import { deliveryPrefix } from "./delivery/prefix.ts";
import { ImageDirectory } from "./directory.ts";
import type { Image } from "./image.ts";
import { ImagesService } from "./image-services.ts";
import { resultFolder } from "./recipe/recipe.ts";
import { CopyPlan } from "./results/copy-plan.ts";
import { ResultsOfMain, serveResults } from "./delivery/results-of-main.ts";
import { OriginalsOfMain, serveOriginals } from "./transformations/originals-of-main.ts";
import { Transformations, type TransformationSettings } from "./transformations/transformations.ts";
import { imageFetchInMain, serveImageFetches } from "./transformations/fetch-in-main.ts";
import { answerScriptFetch } from "./transformations/script-fetch.ts";
import { declaration } from "./declaration.ts";
import { imageErrors } from "./errors.ts";
import { imageErrorCodes, transformationErrorCodes } from "./api-errors.ts";
import { transformationErrors } from "./transformations/errors.ts";

const shown: ShownBinding<"images"> = {
  type: imagesType,
  isolate: {
    module: "products/images/worker/binding.js",
    factory: "imagesBinding",
    className: "ImagesBinding",
  },
};

const transformationSettings =
  (settings: ZoneSettings) =>
  (zoneId: string): TransformationSettings => ({
    mode: settings.value(zoneId, "transformations"),
    allowedOrigins: settings.value(zoneId, "transformations_allowed_origins"),
  });

/**
 * In edge processes: delivers the results that main has made of stored images and of pictures of origins. Main answers the
 * other requests, because it makes results and fetches pictures.
 */
const imagesAtEdges = capability({
  name: "requests for images",
  processes: "edge",
  needs: [edgeServer, toMain, processes, runtime, storage, blobs, accounts, zoneSettings],
  create({ calls, config, logger, own, ...needed }) {
    needed.runtime.answerImageFetch = imageFetchInMain(calls!);
    const { handler } = needed.toMain.when(() => true);
    const passOn: DeliveryOptions["passOn"] = async (edgeRequest) => {
      await handler(edgeRequest);
    };
    const memoryBytesMax = partOfNode(config.imageMemoryMegabytes * mebibyte, own, config);
    const results = new ResultsOfMain(calls!, memoryBytesMax, new CopyPlan(config.imageIntermediatePixels));
    const forget = ({ content }: Image): void => {
      if (content !== null) results.forget(resultFolder(content.blobKey));
    };
    const inMain = async (): Promise<never> => Promise.reject(new AnsweredElsewhere());
    const imageDelivery = new Delivery({
      directory: new ImageDirectory(needed.storage, needed.accounts, forget),
      resultMaker: results,
      intermediateCopies: results,
      blobs: blobUrlOf(config).kind === "files" ? needed.blobs : { file: inMain },
      logger,
      url: config.deliveryUrl === undefined ? undefined : new URL(config.deliveryUrl),
      upload: passOn,
      passOn,
    });
    const transformations = new Transformations({
      originals: new OriginalsOfMain(calls!),
      results,
      logger,
      settings: transformationSettings(needed.zoneSettings),
      send: inMain,
      passOn,
    });
    return { imageDelivery, transformations };
  },
  edgeHandlers: (services) => [
    { phase: "image-delivery", handler: services.imageDelivery.handler },
    { phase: "image-transformation", handler: services.transformations.handler },
  ],
  bindings: ({ calls }) => ({ images: { ...shown, handler: answeredInMain(calls!) } }),
});

export const images = capability({
  name: "images",
  declares: declaration,
  atEdges: imagesAtEdges,
  needs: [processes, dataFolder, storage, blobs, accounts, zoneSettings, outbound, edgeServer, runtime],
  create({ config, logger, own, ...needed }) {
    const service = new ImagesService({
      storage: needed.storage,
      accounts: needed.accounts,
      blobs: needed.blobs,
      policy: needed.policy,
      logger,
      cacheFolder: join(needed.folder, "cache"),
      memoryBytesMax: partOfNode(config.imageMemoryMegabytes * mebibyte, own, config),
      diskBytesMax: config.imageDiskMegabytes * mebibyte,
      intermediateCopySidePixels: config.imageIntermediatePixels,
      deliveryUrl: config.deliveryUrl,
      moreFormats: { avif: config.imageAcceptAvif, svg: config.imageAcceptSvg },
      transformationSettings: transformationSettings(needed.zoneSettings),
      send: async (...request) => needed.outbound.fetch(...request),
      engine: { slots: config.imageSlots, faceDetector: config.imageFaceDetector },
    });
    const { edgeListener } = needed;
    edgeListener.onListening(() => service.listensAt(`http://${edgeListener.authority}${deliveryPrefix}`));
    needed.runtime.answerImageFetch = async (...fetched) =>
      answerScriptFetch(service.transformations, ...fetched);
    if (own.role === "main") {
      serveImageFetches(needed.calls!, needed.runtime.answerImageFetch);
      serveResults(needed.calls!, service.results);
      serveOriginals(needed.calls!, service.originals);
    }
    return { images: service };
  },
  operations: imageOperations,
  errors: [
    { title: "Images", errors: imageErrors, codes: imageErrorCodes },
    { title: "Transformations of zones", errors: transformationErrors, codes: transformationErrorCodes },
  ],
  edgeHandlers: (services) => [
    { phase: "image-delivery", handler: services.images.delivery.handler },
    { phase: "image-transformation", handler: services.images.transformations.handler },
  ],
  bindings: (services) => ({
    images: {
      ...shown,
      handler: imagesBinding(services.images),
    },
  }),
  metrics: async (services) => (await import("./engine/metrics.ts")).imageMetrics(services.images.engine),
  close: (services) => services.images.close(),
});
