import { capability } from "../../capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { zoneSettings } from "../../control/zone-settings/capability.ts";
import type { ZoneSettings } from "../../control/zone-settings/zone-settings.ts";
import { edgeServer } from "../../edge/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { blobs, storage } from "../../platform/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { answeredInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { imagesType } from "./binding-type.ts";
import { toMain } from "../../edge/processes/capability.ts";
import { blobUrlOf } from "../../platform/open-blobs.ts";
import { partOfNode } from "../../platform/processes/part-of-node.ts";
import { AnsweredElsewhere, Delivery, type DeliveryOptions } from "./delivery/delivery.ts";
import { ImageDirectory } from "./directory.ts";
import type { Image } from "./image.ts";
import { resultFolder } from "./recipe/recipe.ts";
import { CopyPlan } from "./results/copy-plan.ts";
import { ResultsOfMain } from "./delivery/results-of-main.ts";
import { OriginalsOfMain } from "./transformations/originals-of-main.ts";
import { Transformations, type TransformationSettings } from "./transformations/transformations.ts";
import { imageFetchInMain } from "./transformations/fetch-in-main.ts";

/** The binding, as scripts see it. */
export const shown: ShownBinding<"images"> = {
  type: imagesType,
  isolate: {
    module: "products/images/worker/binding.js",
    factory: "imagesBinding",
    className: "ImagesBinding",
  },
};

/** The settings of a zone for transformations of pictures by URL. */
export const transformationSettings =
  (settings: ZoneSettings) =>
  (zoneId: string): TransformationSettings => ({
    mode: settings.value(zoneId, "transformations"),
    allowedOrigins: settings.value(zoneId, "transformations_allowed_origins"),
  });

/**
 * In edge processes: delivers the results that main has made of stored images and of pictures of origins. Main answers the
 * other requests, because it makes results and fetches pictures.
 */
export const imagesAtEdges = capability({
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
