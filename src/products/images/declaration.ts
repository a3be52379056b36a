import { binding, declare, table } from "../../declaration.ts";
import { forms } from "../../platform/config/forms.ts";
import type {
  ImagesTable,
  ImageVariantsTable,
  ImageKeysTable,
  ImageSettingsTable,
  ImageOrphansTable,
} from "./tables.ts";
import type { imagesType } from "./binding-type.ts";

/** Images. */
export const declaration = declare({
  settings: {
    deliveryUrl: {
      kind: "text",
      form: forms.httpUrl,
      flag: "delivery-url",
      env: "SELVEDGE_DELIVERY_URL",
      describe: "public base URL of image delivery (default: /cdn-cgi/imagedelivery on the edge)",
    },
    imageSlots: {
      kind: "count",
      min: 1,
      max: 256,
      flag: "image-slots",
      env: "SELVEDGE_IMAGE_SLOTS",
      describe: "images transformed concurrently (default: the number of CPU cores)",
    },
    imageMemoryMegabytes: {
      kind: "count",
      min: 1,
      max: 1_000_000,
      flag: "image-memory-megabytes",
      env: "SELVEDGE_IMAGE_MEMORY_MEGABYTES",
      default: 128,
      describe: "memory for frequently requested transformed images",
    },
    imageDiskMegabytes: {
      kind: "count",
      min: 512,
      max: 100_000_000,
      flag: "image-disk-megabytes",
      env: "SELVEDGE_IMAGE_DISK_MEGABYTES",
      default: 2048,
      describe: "disk space for transformed images, in the data folder",
    },
    imageIntermediatePixels: {
      kind: "count",
      min: 0,
      max: 12_000,
      flag: "image-intermediate-pixels",
      env: "SELVEDGE_IMAGE_INTERMEDIATE_PIXELS",
      default: 2560,
      describe:
        "longer side of the intermediate copy of a large image, from which smaller results are made; 0 for no copy",
    },
    imageAcceptAvif: {
      kind: "flag",
      flag: "image-accept-avif",
      env: "SELVEDGE_IMAGE_ACCEPT_AVIF",
      default: false,
      describe: "whether uploads may be AVIF, in addition to JPEG, PNG, GIF and WebP",
    },
    imageAcceptSvg: {
      kind: "flag",
      flag: "image-accept-svg",
      env: "SELVEDGE_IMAGE_ACCEPT_SVG",
      default: false,
      describe: "whether uploads may be SVG; scripts and external references are removed on delivery",
    },
    imageFaceDetector: {
      kind: "text",
      flag: "image-face-detector",
      env: "SELVEDGE_IMAGE_FACE_DETECTOR",
      describe:
        "module that exports detect(rgb, width, height), which finds faces for gravity=face (default: none)",
    },
  },
  tables: {
    images: table<ImagesTable>(),
    image_variants: table<ImageVariantsTable>(),
    image_keys: table<ImageKeysTable>(),
    image_settings: table<ImageSettingsTable>(),
    image_orphans: table<ImageOrphansTable>(),
  },
  migrations: {
    "0004-images": async () => (await import("./migrations/0004-images.ts")).images,
  },
  changes: ["image", "image_settings"],
  bindings: {
    images: binding<typeof imagesType>(),
  },
});
