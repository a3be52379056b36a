import type { IncomingMessage, ServerResponse } from "node:http";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { ApiError, apiErrors } from "../api/errors.ts";
import type { EdgeHandler, EdgeVisit } from "../edge/handlers.ts";
import type { FileBlobs } from "../storage/blobs.ts";
import type { Directory, Held } from "./directory.ts";
import { imageErrors } from "./errors.ts";
import { contentTypes, imageLimits } from "./image.ts";
import type { Mezzanines } from "./mezzanines.ts";
import { accepted, applyHints } from "./negotiate.ts";
import { parseOptions, type Transform } from "./options.ts";
import { engineVersion, plan, resultFolder, resultKey } from "./recipe.ts";
import { isNotModified, safeHeaders, sendError, sendStored } from "./respond.ts";
import type { Stored } from "./results.ts";
import { transformOf, variantsOf, type ImageSettings } from "./settings.ts";
import { verify } from "./signature.ts";
import type { Transforms, Wanted } from "./transforms.ts";

/** What a path asks for. It is kept as long as the image and the account's settings stay as they are. */
interface Route {
  held: Held;
  settings: ImageSettings;
  transform: Transform;
  isSigned: boolean;
  maxAgeSeconds: number;
  /** By what the client accepts and hints, which falls into few kinds: one result each. */
  pictures: Map<string, Picture>;
}

interface Picture extends Wanted {
  etag: string;
  /** Names and values in turn, which is what is written fastest: all that are the same in every answer. */
  headers: readonly string[];
  /** Of an answer that says that nothing has changed. */
  unchangedHeaders: readonly string[];
}

/** Any visitor can have more of them made, each path with every kind of client: about what they take in memory. */
const routesBytesMax = 64 * 1024 * 1024;
const routeBytes = 1024;
const pictureBytes = 4096;
/** More is not needed to say everything once, and paths are kept. */
const optionsCharactersMax = 2048;
const hostedMaxAgeSeconds = 172_800;
const version = engineVersion.replaceAll(/[^\d.]+/g, "-").replace(/^-|-$/g, "");

/** The path that delivery has on every host of the edge. */
export const deliveryPrefix = "/cdn-cgi/imagedelivery";

export interface DeliveryOptions {
  directory: Directory;
  transforms: Transforms;
  mezzanines: Mezzanines;
  blobs: FileBlobs;
  logger: Logger;
  /** Another address of delivery, as it is known to visitors. */
  url: URL | undefined;
  upload: (visit: EdgeVisit, token: string) => Promise<void>;
}

/** Delivers stored images: `{prefix}/{hash}/{image id}/{variant or options}`. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #routes = new LRUCache<string, Route>({
    maxSize: routesBytesMax,
    sizeCalculation: ({ pictures }, pathname) => pathname.length + routeBytes + pictures.size * pictureBytes,
  });
  readonly #host: string | undefined;
  readonly #hostPrefix: string;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#host = options.url?.hostname;
    this.#hostPrefix = options.url?.pathname.replace(/\/$/, "") ?? "";
  }

  readonly handler: EdgeHandler = (visit) => {
    const prefix = this.#prefixOf(visit);
    return prefix === undefined ? false : this.#serve(visit, prefix);
  };

  #prefixOf({ path, host }: EdgeVisit): string | undefined {
    if (path.startsWith(deliveryPrefix) && path.charCodeAt(deliveryPrefix.length) === 47)
      return deliveryPrefix;
    const prefix = this.#hostPrefix;
    return host === this.#host && path.startsWith(`${prefix}/`) ? prefix : undefined;
  }

  async #serve(visit: EdgeVisit, prefix: string): Promise<true> {
    const { request, response, ray } = visit;
    try {
      const token = /^\/upload\/([\w-]{1,64})$/.exec(visit.path.slice(prefix.length))?.[1];
      if (token !== undefined) await this.#options.upload(visit, token);
      else if (request.method === "GET" || request.method === "HEAD") await this.#deliver(visit, prefix);
      else if (request.method === "OPTIONS") answerPreflight(response);
      else throw apiErrors.noRoute(request.method ?? "", visit.path);
    } catch (error) {
      if (response.destroyed) return true;
      if (response.headersSent) throw error;
      await sendError(request, response, this.#visible(error, ray), ray);
    }
    return true;
  }

  #visible(error: unknown, ray: string): ApiError {
    if (error instanceof ApiError) return error;
    this.#options.logger.error({ err: error, ray }, "an image could not be delivered");
    return apiErrors.internal(ray);
  }

  async #deliver({ request, response, path }: EdgeVisit, prefix: string): Promise<void> {
    const question = path.indexOf("?");
    const query = question < 0 ? "" : path.slice(question + 1);
    const pathname = question < 0 ? path : path.slice(0, question);
    let route = this.#routes.get(pathname);
    if (route === undefined || !route.held.isCurrent || !route.settings.isCurrent) {
      route = await this.#route(pathname.slice(prefix.length + 1));
      this.#routes.set(pathname, route);
    }
    const maxAgeSeconds = route.isSigned
      ? this.#checkSignature(route, [pathname, pathname.slice(prefix.length)], query)
      : route.maxAgeSeconds;
    const picture = this.#picture(route, pathname, request);
    const isKnown = isNotModified(request, picture.etag, route.held.image!.uploadedOn);
    const headers = [...(isKnown ? picture.unchangedHeaders : picture.headers)];
    headers.push("cache-control", cacheControl(maxAgeSeconds, route.isSigned));
    if (isKnown) {
      response.writeHead(304, headers).end();
      return;
    }
    const quick = this.#options.transforms.quick(picture.name);
    if (quick !== undefined) headers.push(...hitHeaders);
    const stored =
      quick === undefined ? await this.#find(route, picture, headers, response) : { bytes: quick };
    if (stored !== undefined) await sendStored(request, response, stored, picture.etag, headers);
  }

  /** A result that is not in memory: kept on disk, or made now. Undefined when the visitor has left. */
  async #find(
    { held }: Route,
    picture: Picture,
    headers: string[],
    response: ServerResponse,
  ): Promise<Stored | undefined> {
    const { transforms, blobs } = this.#options;
    const content = held.image!.content!;
    const kept = picture.planned.isUntransformed
      ? { path: blobs.path(content.blobKey), sizeBytes: content.sizeBytes }
      : await transforms.kept(picture.name);
    if (kept !== undefined) {
      headers.push(...hitHeaders);
      return kept;
    }
    const left = new AbortController();
    const leave = (): void => left.abort(new Error("the visitor has left"));
    response.once("close", leave);
    const startedAt = performance.now();
    try {
      const made = await transforms.make(held, picture, left.signal);
      const tookMs = Math.round(performance.now() - startedAt);
      headers.push("cf-cache-status", "MISS", "cf-resized", `internal=ok/m q=0 n=${tookMs} c=0 v=${version}`);
      headers.push("server-timing", `transform;dur=${tookMs}`);
      return made;
    } catch (error) {
      if (left.signal.aborted) return undefined;
      throw error;
    } finally {
      response.off("close", leave);
    }
  }

  /** Looks up what a path names: hash, image id (which may have slashes), and a variant or options. */
  async #route(path: string): Promise<Route> {
    const first = path.indexOf("/");
    const last = path.lastIndexOf("/");
    const accountId = this.#options.directory.accountId(path.slice(0, first));
    if (first < 1 || last <= first)
      throw imageErrors.notFound("Image, which is asked for as hash/id/options,");
    if (accountId === undefined) throw imageErrors.notFound("Account hash");
    const id = decode(path.slice(first + 1, last));
    if (id.length > imageLimits.idCharactersMax) throw imageErrors.notFound();
    const [held, settings] = await Promise.all([
      this.#options.directory.image(accountId, id),
      this.#options.directory.settings(accountId),
    ]);
    if (held.image?.content == null) throw imageErrors.notFound();
    if (held.hasMezzanine === undefined) await this.#options.mezzanines.look(held);
    const segment = path.slice(last + 1);
    if (segment.length > optionsCharactersMax)
      throw imageErrors.invalidTransform(`expected at most ${optionsCharactersMax} characters of options`);
    const isFlexible = segment.includes("=") || /%3d/i.test(segment);
    if (isFlexible && !settings.flexibleVariants) throw imageErrors.flexibleOff();
    const variant = isFlexible ? undefined : variantsOf(settings).find(({ id }) => id === decode(segment));
    if (!isFlexible && variant === undefined) throw imageErrors.notFound("Variant");
    return {
      held,
      settings,
      transform: variant === undefined ? parseOptions(segment) : transformOf(variant),
      isSigned: held.image.requireSignedUrls && variant?.neverRequireSignedUrls !== true,
      maxAgeSeconds: variant?.options.browserTtlSeconds ?? settings.browserTtlSeconds ?? hostedMaxAgeSeconds,
      pictures: new Map(),
    };
  }

  /** How long the answer may be kept. Throws where the signature does not hold. */
  #checkSignature(route: Route, paths: readonly string[], query: string): number {
    const nowSeconds = Date.now() / 1000;
    const checked = verify(paths, query, route.settings.keys, nowSeconds);
    if ("fault" in checked) throw imageErrors.denied(checked.fault);
    const leftSeconds =
      checked.expiresOn === undefined ? Infinity : Math.floor(checked.expiresOn - nowSeconds);
    return Math.min(route.maxAgeSeconds, leftSeconds);
  }

  #picture(route: Route, pathname: string, request: IncomingMessage): Picture {
    const { transform, held } = route;
    const formats = accepted(request.headers.accept);
    const isHinted = transform.width === "auto" || transform.slowConnectionQuality !== undefined;
    const hinted = isHinted ? applyHints(transform, request.headers) : { transform, vary: [] };
    const kind = `${held.hasMezzanine ? "m" : ""}${formats.avif ? "a" : ""}${formats.webp ? "w" : ""}${
      isHinted ? `/${hinted.transform.width}/${hinted.transform.quality}/${hinted.vary.join()}` : ""
    }`;
    let picture = route.pictures.get(kind);
    if (picture === undefined) {
      const image = held.image!;
      const content = image.content!;
      const planned = plan(hinted.transform, content, formats);
      const { mezzanines } = this.#options;
      const isFromMezzanine = held.hasMezzanine === true && mezzanines.serves(content, planned.recipe);
      const source = isFromMezzanine ? mezzanines.key(content) : content.sha256;
      const key = planned.isUntransformed ? content.sha256.slice(0, 32) : resultKey(source, planned.recipe);
      const isNegotiated = (transform.format ?? "auto") === "auto" && transform.compression === undefined;
      const vary = [...(isNegotiated ? ["Accept"] : []), ...hinted.vary];
      const format = planned.isUntransformed ? content.format : planned.recipe.output.format;
      const unchangedHeaders = ["access-control-allow-origin", "*", "etag", `"${key}"`];
      if (vary.length > 0) unchangedHeaders.push("vary", vary.join(", "));
      picture = {
        name: `${resultFolder(content.blobKey)}/${key}`,
        etag: `"${key}"`,
        planned,
        isFromMezzanine,
        unchangedHeaders,
        headers: [
          ...unchangedHeaders,
          ...Object.entries(safeHeaders).flat(),
          "content-type",
          format === "json" ? "application/json" : contentTypes[format],
          "content-disposition",
          disposition(image.filename, format),
          "last-modified",
          new Date(image.uploadedOn).toUTCString(),
          "accept-ranges",
          "bytes",
          ...(transform.width === "auto" ? ["accept-ch", "Sec-CH-Viewport-Width, Sec-CH-DPR"] : []),
          ...(planned.warnings.length === 0
            ? []
            : ["warning", planned.warnings.map((text) => `cf-images 299 "${text}"`).join(", ")]),
        ],
      };
      route.pictures.set(kind, picture);
      // It is larger now, which is counted when it is put in anew.
      this.#routes.delete(pathname);
      this.#routes.set(pathname, route);
    }
    return picture;
  }
}

const hitHeaders = ["cf-cache-status", "HIT", "cf-resized", `internal=ok/h q=0 n=0 c=0 v=${version}`];

const cacheControl = (seconds: number, isSigned: boolean): string =>
  isSigned ? `private, max-age=${seconds}` : `public, max-age=${seconds}, stale-while-revalidate=7200`;

function answerPreflight(response: ServerResponse): void {
  response
    .writeHead(204, {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD, OPTIONS",
      "access-control-allow-headers": "*",
      "access-control-max-age": "86400",
    })
    .end();
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw imageErrors.notFound();
  }
}

/** The file's own name, with the ending of what it has become. */
function disposition(filename: string, format: string): string {
  const stem = filename.replace(/\.[^.]*$/, "").replaceAll(/[^\w. -]/g, "_") || "image";
  const ending = format === "jpeg" ? "jpg" : format;
  return `inline; filename="${stem}.${ending}"`;
}

export const blobHeaders = (format: keyof typeof contentTypes, filename: string): Record<string, string> => ({
  "content-type": contentTypes[format],
  "content-disposition": `attachment; filename="${filename.replaceAll(/[^\w. -]/g, "_")}"`,
  "x-content-type-options": "nosniff",
  "content-security-policy": safeHeaders["content-security-policy"],
});
