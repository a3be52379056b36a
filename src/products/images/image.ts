import { imageErrors } from "./errors.ts";
import { mebibyte } from "../../platform/bytes.ts";

export type SourceFormat = "jpeg" | "png" | "gif" | "webp" | "avif" | "svg";
/** Formats that are accepted only when a setting enables them. */
export interface MoreFormats {
  avif: boolean;
  svg: boolean;
}

/** Artist and copyright of an image from its EXIF. */
export interface Rights {
  Copyright?: string;
  Artist?: string;
}

/** Properties of an image that its header contains. */
export interface Probe {
  format: SourceFormat;
  /** As stored, before the EXIF orientation is applied. */
  width: number;
  height: number;
  /** EXIF orientation, 1 to 8. */
  orientation: number;
  /** For JPEGs only; the other formats are read when needed. */
  rights?: Rights;
  frames: number;
  hasAlpha: boolean;
  hasPalette: boolean;
  isProgressive: boolean;
}

/** The bytes of an uploaded image. */
export interface ImageContent extends Probe {
  blobKey: string;
  sha256: string;
  sizeBytes: number;
}

/** The point that a crop should keep, in fractions of the upright image. */
export interface Focus {
  x: number;
  y: number;
}

export interface Image {
  accountId: string;
  id: string;
  filename: string;
  uploadedOn: number;
  requireSignedUrls: boolean;
  meta: Record<string, unknown>;
  creator: string | null;
  /**
   * For a pending direct upload: its expiry, and the hash of the token in its URL. A draft has no content.
   */
  draft: { expiresOn: number; tokenHash: string } | null;
  content: ImageContent | null;
  /** Computed by the first transform that needs it. */
  focus: Focus | null;
}

/** Limits of stored images, listed in docs/reference/limits.md. */
export const imageLimits = {
  fileBytesMax: 100 * mebibyte,
  /** An SVG is read into memory as a whole. */
  svgBytesMax: 5 * mebibyte,
  sidePixelsMax: 12_000,
  /** Total of all frames. */
  pixelsMax: 100_000_000,
  /**
   * For results larger than their image: interpolated pixels need many times more memory than decoded ones.
   */
  enlargedPixelsMax: 25_000_000,
  framesMax: 10_000,
  /** Animations above this are delivered unchanged. */
  animationPixelsMax: 50_000_000,
  idCharactersMax: 1024,
  filenameCharactersMax: 255,
  metadataBytesMax: 1024,
  creatorCharactersMax: 1024,
  imagesPerAccountMax: 1_000_000,
  variantsMax: 100,
  keysMax: 10,
} as const;

export const contentTypes: Record<SourceFormat, string> = {
  jpeg: "image/jpeg",
  png: "image/png",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  svg: "image/svg+xml",
};

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether every database accepts the text: some refuse NUL. */
export const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed();

/** Path segments of the API at the position of an image id. */
const reservedIds = ["batch_token", "config", "direct_upload", "keys", "stats", "variants"];

/** Validates a custom id. It may contain slashes, but must not look like a generated id. */
export function checkCustomId(id: string): string {
  const fault =
    id === "" || id.length > imageLimits.idCharactersMax
      ? `1 to ${imageLimits.idCharactersMax} characters`
      : id.startsWith("/") || id.endsWith("/")
        ? "no slash at its beginning or end"
        : uuidPattern.test(id)
          ? "an id that is not a UUID: these are generated"
          : // oxlint-disable-next-line no-control-regex
            /[\u0000-\u001f\u007f]/.test(id) || !id.isWellFormed()
            ? "no control characters"
            : reservedIds.includes(id)
              ? `none of ${reservedIds.join(", ")}`
              : // URL parsers remove such parts, in every spelling
                id.split("/").some((part) => part === "." || part === "..")
                ? "no part that is . or .."
                : undefined;
  if (fault === undefined) return id;
  throw imageErrors.invalidUpload(
    `Expected ${fault} for id but received ${JSON.stringify(id.slice(0, 80))}`,
    "/body/id",
  );
}

export function checkMetadata(metadata: unknown): Record<string, unknown> {
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw imageErrors.invalidUpload("Expected a JSON object for metadata", "/body/metadata");
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes > imageLimits.metadataBytesMax)
    throw imageErrors.invalidUpload(
      `Expected at most ${imageLimits.metadataBytesMax} bytes of metadata but received ${bytes}`,
      "/body/metadata",
    );
  return metadata as Record<string, unknown>;
}

export function checkCreator(creator: string): string {
  if (creator.length <= imageLimits.creatorCharactersMax && isStorable(creator)) return creator;
  throw imageErrors.invalidUpload(
    `Expected at most ${imageLimits.creatorCharactersMax} characters for creator, and no NUL`,
    "/body/creator",
  );
}

/** The file's base name: some clients send whole paths, and some send unprintable characters. */
export function cleanFilename(name: string | undefined): string {
  // oxlint-disable-next-line no-control-regex
  const printed = (name ?? "").replaceAll(/[\u0000-\u001f\u007f]/g, "");
  const last = printed.split(/[/\\]/).at(-1)!;
  return (last === "" ? "file" : last).slice(0, imageLimits.filenameCharactersMax).toWellFormed();
}

/** Refuses images whose header announces too many pixels to decode. */
export function checkSize(probe: Probe): void {
  const { width, height, frames } = probe;
  if (Math.max(width, height) > imageLimits.sidePixelsMax)
    throw imageErrors.tooManyPixels(
      `expected sides of at most ${imageLimits.sidePixelsMax} pixels but received ${width}×${height}`,
    );
  if (frames > imageLimits.framesMax)
    throw imageErrors.tooManyPixels(`expected at most ${imageLimits.framesMax} frames but received more`);
  if (width * height * frames > imageLimits.pixelsMax)
    throw imageErrors.tooManyPixels(
      `expected at most ${imageLimits.pixelsMax} pixels in all frames but received ${width}×${height}×${frames}`,
    );
}
