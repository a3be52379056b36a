import type { IncomingMessage, ServerResponse } from "node:http";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { EdgeHandler, EdgeHttpRequest } from "../../../edge/request/handlers.ts";
import type { Blobs } from "../../../platform/storage/blobs.ts";
import type { ImageDirectory, Held } from "../directory.ts";
import { imageErrors } from "../errors.ts";
import { contentTypes, imageLimits } from "../image.ts";
import type { CopyPlan } from "../results/copy-plan.ts";
import { accepted, applyHints } from "./negotiate.ts";
import { parseOptions, type Transform } from "../recipe/options.ts";
import { answerPreflight, hitHeaders, missHeaders, pictureHeaders } from "./picture-headers.ts";
import { deliveryPrefix } from "./prefix.ts";
import { planResult, resultFolder, resultKey } from "../recipe/recipe.ts";
import {
  attemptsMax,
  isNotModified,
  noRoute,
  safeHeaders,
  sendError,
  sendStored,
  StoredGone,
  visibleError,
} from "./respond.ts";
import type { MadeResult } from "../results/made-results.ts";
import type { Stored } from "../results/results.ts";
import { transformOf, variantsOf, type ImageSettings } from "../settings/settings.ts";
import { verify } from "./signature.ts";
import type { WantedResult } from "../results/result-maker.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** A parsed path, cached while the image and the settings of its account are unchanged. */
interface Route {
  held: Held;
  settings: ImageSettings;
  transform: Transform;
  isSigned: boolean;
  maxAgeSeconds: number;
  /** Results by the client's Accept and hint headers, which fall into few classes. */
  pictures: Map<string, Picture>;
}

interface Picture extends WantedResult {
  etag: string;
  /** Headers that all responses share, as alternating names and values, which Node writes fastest. */
  headers: readonly string[];
  /** Headers of a 304 response. */
  unchangedHeaders: readonly string[];
}

/** Visitors can create any number of routes; this is the approximate memory limit for them. */
const routesBytesMax = 64 * 1024 * 1024;
const routeBytes = 1024;
const pictureBytes = 4096;
/** Longer options would only repeat themselves, and paths are cached. */
const optionsCharactersMax = 2048;
const hostedMaxAgeSeconds = 172_800;

/** Results of stored images, and how to come by those that are not there. */
export interface DeliveredResults {
  /** The result, if it is in memory. */
  inMemory(name: string): Buffer | undefined;
  kept(name: string): Promise<Stored | undefined>;
  make(held: Held, wanted: WantedResult, signal: AbortSignal): Promise<MadeResult>;
}

/** Another process must answer the request: nothing has been sent. */
export class AnsweredElsewhere extends Error {}

export interface DeliveryOptions {
  directory: ImageDirectory;
  resultMaker: DeliveredResults;
  intermediateCopies: { plan: CopyPlan; look(held: Held): Promise<void> };
  blobs: Pick<Blobs, "file">;
  logger: Logger;
  /** An additional delivery URL that visitors use. */
  url: URL | undefined;
  upload: (edgeRequest: EdgeHttpRequest, token: string) => Promise<void>;
  /** Has another process answer. */
  passOn?: (edgeRequest: EdgeHttpRequest) => Promise<void>;
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

  readonly handler: EdgeHandler = (edgeRequest) => {
    const prefix = this.#prefixOf(edgeRequest);
    return prefix === undefined ? false : this.#serve(edgeRequest, prefix);
  };

  #prefixOf({ path, host }: EdgeHttpRequest): string | undefined {
    if (path.startsWith(deliveryPrefix) && path.charCodeAt(deliveryPrefix.length) === 47)
      return deliveryPrefix;
    const prefix = this.#hostPrefix;
    return host === this.#host && path.startsWith(`${prefix}/`) ? prefix : undefined;
  }

  async #serve(edgeRequest: EdgeHttpRequest, prefix: string): Promise<true> {
    const { request, response, ray } = edgeRequest;
    const token = /^\/upload\/([\w-]{1,64})$/.exec(edgeRequest.path.slice(prefix.length))?.[1];
    try {
      if (token !== undefined) await this.#options.upload(edgeRequest, token);
      else if (request.method === "GET" || request.method === "HEAD")
        await this.#deliver(edgeRequest, prefix);
      else if (request.method === "OPTIONS") answerPreflight(response);
      else throw noRoute(request, edgeRequest.path);
    } catch (error) {
      if (response.destroyed) return true;
      if (response.headersSent) throw error;
      if (error instanceof AnsweredElsewhere) {
        await this.#options.passOn!(edgeRequest);
        return true;
      }
      await sendError(
        request,
        response,
        visibleError(error, ray, this.#options.logger, "an image could not be delivered"),
        ray,
        token === undefined ? undefined : true,
      );
    }
    return true;
  }

  /**
   * If the image changes while it is sent, the new one is sent: a change is no deletion. A result whose file was removed
   * before it could be opened is looked for again.
   */
  async #deliver(edgeRequest: EdgeHttpRequest, prefix: string): Promise<void> {
    let gone: StoredGone | undefined;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const route = await this.#routeOf(edgeRequest, prefix); // throws once the image is gone
      try {
        await this.#send(route, edgeRequest, prefix);
        return;
      } catch (error) {
        if (edgeRequest.response.headersSent) throw error;
        // If it is not current, it changed in the meantime, or another node's change of it has arrived now.
        gone = error instanceof StoredGone ? error : undefined;
        if (route.held.isCurrent && gone === undefined) throw error;
      }
    }
    throw gone ?? imageErrors.unavailable(); // a file that is always gone is lost
  }

  async #routeOf({ path }: EdgeHttpRequest, prefix: string): Promise<Route> {
    const question = path.indexOf("?");
    const pathname = question < 0 ? path : path.slice(0, question);
    const known = this.#routes.get(pathname);
    if (known?.held.isCurrent === true && known.settings.isCurrent) return known;
    const route = await this.#route(pathname.slice(prefix.length + 1));
    this.#routes.set(pathname, route);
    return route;
  }

  async #send(route: Route, { request, response, path }: EdgeHttpRequest, prefix: string): Promise<void> {
    const question = path.indexOf("?");
    const query = question < 0 ? "" : path.slice(question + 1);
    const pathname = question < 0 ? path : path.slice(0, question);
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
    const inMemory = this.#options.resultMaker.inMemory(picture.name);
    if (inMemory !== undefined) headers.push(...hitHeaders);
    const stored =
      inMemory === undefined ? await this.#find(route, picture, headers, response) : { bytes: inMemory };
    if (stored === undefined) return;
    await sendStored(request, response, stored, picture.etag, headers).catch(goneOr(route));
  }

  /**
   * A result that is not in memory: read from disk or made now. Undefined when the client has disconnected.
   */
  async #find(
    { held }: Route,
    picture: Picture,
    headers: string[],
    response: ServerResponse,
  ): Promise<Stored | undefined> {
    const { resultMaker, blobs } = this.#options;
    const content = held.image!.content!;
    const kept = picture.planned.isUntransformed
      ? {
          ...(await blobs.file(content.blobKey).catch(goneOr({ held }))),
          sizeBytes: content.sizeBytes,
        }
      : await resultMaker.kept(picture.name);
    if (kept !== undefined) {
      headers.push(...hitHeaders);
      return kept;
    }
    const left = new AbortController();
    const leave = (): void => left.abort(new Error("the visitor has left"));
    response.once("close", leave);
    const startedAt = performance.now();
    try {
      const { stored, times } = await resultMaker.make(held, picture, left.signal);
      headers.push(...missHeaders(performance.now() - startedAt, times));
      return stored;
    } catch (error) {
      if (left.signal.aborted) return undefined;
      throw error;
    } finally {
      response.off("close", leave);
    }
  }

  /** Parses a path: account hash, image id (which may contain slashes), and a variant or options. */
  async #route(path: string): Promise<Route> {
    const first = path.indexOf("/");
    const last = path.lastIndexOf("/");
    const accountId = this.#options.directory.accountId(path.slice(0, first));
    if (first < 1 || last <= first) throw imageErrors.notFound("Image, addressed as hash/id/options,");
    if (accountId === undefined) throw imageErrors.notFound("Account hash");
    const id = decode(path.slice(first + 1, last));
    if (id.length > imageLimits.idCharactersMax) throw imageErrors.notFound();
    const [held, settings] = await Promise.all([
      this.#options.directory.image(accountId, id),
      this.#options.directory.settings(accountId),
    ]);
    if (held.image?.content == null) throw imageErrors.notFound();
    if (held.hasIntermediateCopy === undefined) await this.#options.intermediateCopies.look(held);
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

  /** How long the response may be cached, in seconds. Throws when the signature is invalid. */
  #checkSignature(route: Route, paths: readonly string[], query: string): number {
    const nowSeconds = clock.now() / 1000;
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
    const kind = `${held.hasIntermediateCopy ? "m" : ""}${formats.avif ? "a" : ""}${formats.webp ? "w" : ""}${
      isHinted ? `/${hinted.transform.width}/${hinted.transform.quality}/${hinted.vary.join()}` : ""
    }`;
    let picture = route.pictures.get(kind);
    if (picture === undefined) {
      const image = held.image!;
      const content = image.content!;
      const planned = planResult(hinted.transform, content, formats);
      const { intermediateCopies } = this.#options;
      const isFromIntermediateCopy =
        held.hasIntermediateCopy === true && intermediateCopies.plan.serves(content, planned.recipe);
      const source = isFromIntermediateCopy ? intermediateCopies.plan.key(content) : content.sha256;
      const key = planned.isUntransformed ? content.sha256.slice(0, 32) : resultKey(source, planned.recipe);
      const isNegotiated = (transform.format ?? "auto") === "auto" && transform.compression === undefined;
      const { unchanged, whole } = pictureHeaders({
        etag: `"${key}"`,
        vary: [...(isNegotiated ? ["Accept"] : []), ...hinted.vary],
        format: planned.isUntransformed ? content.format : planned.recipe.output.format,
        filename: image.filename,
        modifiedOn: new Date(image.uploadedOn).toUTCString(),
        asksForHints: transform.width === "auto",
        warnings: planned.warnings,
      });
      picture = {
        name: `${resultFolder(content.blobKey)}/${key}`,
        etag: `"${key}"`,
        planned,
        isFromIntermediateCopy,
        unchangedHeaders: unchanged,
        headers: whole,
      };
      route.pictures.set(kind, picture);
      // The cached route has grown, so it is stored again with its new size.
      this.#routes.delete(pathname);
      this.#routes.set(pathname, route);
    }
    return picture;
  }
}

/** For an error that is expected if the image was deleted in the meantime. */
const goneOr =
  ({ held }: Pick<Route, "held">) =>
  (error: unknown): never => {
    throw held.isCurrent ? error : imageErrors.notFound();
  };

const cacheControl = (seconds: number, isSigned: boolean): string =>
  isSigned ? `private, max-age=${seconds}` : `public, max-age=${seconds}, stale-while-revalidate=7200`;

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw imageErrors.notFound();
  }
}

export const blobHeaders = (format: keyof typeof contentTypes, filename: string): Record<string, string> => ({
  "content-type": contentTypes[format],
  "content-disposition": `attachment; filename="${filename.replaceAll(/[^\w. -]/g, "_")}"`,
  "x-content-type-options": "nosniff",
  "content-security-policy": safeHeaders["content-security-policy"],
});
