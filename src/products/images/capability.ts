import { join } from "node:path";
import { capability } from "../../capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { zoneSettings } from "../../control/zone-settings/capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { blobs, dataFolder, storage } from "../../platform/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { imagesBinding } from "./binding.ts";
import { partOfNode } from "../../platform/processes/part-of-node.ts";
import { deliveryPrefix } from "./delivery/prefix.ts";
import { ImagesService } from "./image-services.ts";
import { serveResults } from "./delivery/results-of-main.ts";
import { serveOriginals } from "./transformations/originals-of-main.ts";
import { serveImageFetches } from "./transformations/fetch-in-main.ts";
import { answerScriptFetch } from "./transformations/script-fetch.ts";
import { imagesAtEdges, shown, transformationSettings } from "./at-edges.ts";
import { declaration } from "./declaration.ts";
import { imageErrors } from "./errors.ts";
import { imageErrorCodes, transformationErrorCodes } from "./api-errors.ts";
import { transformationErrors } from "./transformations/errors.ts";

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
  operations: async () => (await import("./api.ts")).imageOperations,
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
