import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { DomainError } from "../../../platform/domain-error.ts";
import type { EdgeHandler, EdgeHttpRequest } from "../../../edge/request/handlers.ts";
import type { Sender } from "../../../edge/origin/outbound.ts";
import { inChildSpan } from "../../../platform/tracing/spans/span.ts";
import { nextVia, type Via } from "../../../edge/http/via.ts";
import { SourceGone } from "../engine/engine.ts";
import { accepted, applyHints } from "../delivery/negotiate.ts";
import type { Transform } from "../recipe/options.ts";
import { planResult, resultKey, type Accepted, type PlannedResult } from "../recipe/recipe.ts";
import { answerPreflight, hitHeaders, missHeaders, pictureHeaders } from "../delivery/picture-headers.ts";
import { AnsweredElsewhere } from "../delivery/delivery.ts";
import {
  attemptsMax,
  isNotModified,
  noRoute,
  sendError,
  sendStored,
  StoredGone,
  visibleError,
} from "../delivery/respond.ts";
import type { MadeResult } from "../results/made-results.ts";
import type { Stored } from "../results/results.ts";
import { isAllowedOrigin } from "./allowed-origins.ts";
import { transformationErrors } from "./errors.ts";
import type { Send } from "../../../edge/origin/outbound.ts";
import type { PictureOwner } from "../../../workers/runtime/runtime-options.ts";
import { isOfTransformation } from "./fetch-original.ts";
import type { Original, Originals } from "./originals.ts";
import {
  asksForRedirect,
  parseTransformation,
  sourceUrl,
  transformationPrefix,
  type TransformationRequest,
} from "./request.ts";

export interface TransformationSettings {
  mode: "off" | "on" | "open";
  allowedOrigins: string;
}

/** Results of pictures of origins, and how to come by those that are not there. */
export interface TransformedResults {
  kept(name: string): Promise<Stored | undefined>;
  make(original: Original, name: string, planned: PlannedResult, signal: AbortSignal): Promise<MadeResult>;
}

interface Options {
  originals: Pick<Originals, "use">;
  results: TransformedResults;
  logger: Logger;
  settings: (zoneId: string) => TransformationSettings;
  /** Fetches pictures of other hosts. */
  send: (...request: [...Parameters<Send>, sender: Sender]) => Promise<void>;
  /** Has another process answer. */
  passOn?: (edgeRequest: EdgeHttpRequest) => Promise<void>;
}

const fetchHeaders = ["Accept", "image/avif,image/webp,image/*", "User-Agent", "Selvedge"];
const nothing: Accepted = { avif: false, webp: false };

/** Transforms pictures of a zone's own and allowed hosts: `/cdn-cgi/image/<options>/<source>`. */
export class Transformations {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  readonly handler: EdgeHandler = (edgeRequest) => {
    if (edgeRequest.zone === undefined || !edgeRequest.path.startsWith(transformationPrefix)) return false;
    const settings = this.#options.settings(edgeRequest.zone.id);
    return settings.mode === "off" ? false : this.#serve(edgeRequest, edgeRequest.zone, settings);
  };

  async #serve(
    edgeRequest: EdgeHttpRequest,
    zone: { id: string; name: string },
    settings: TransformationSettings,
  ): Promise<true> {
    const { request, response, ray } = edgeRequest;
    let isHere = true;
    try {
      if (request.method === "OPTIONS") answerPreflight(response);
      else if (request.method !== "GET" && request.method !== "HEAD")
        throw noRoute(request, edgeRequest.path);
      else isHere = await this.#deliver(edgeRequest, zone, settings);
    } catch (error) {
      if (response.destroyed) return true;
      if (response.headersSent) throw error;
      const message = "a picture of an origin could not be transformed";
      const shown = visibleError(error, ray, this.#options.logger, message);
      const source = fallbackOf(edgeRequest, zone.name, error);
      if (source === undefined) await sendError(request, response, shown, ray);
      else
        response
          .writeHead(307, { location: source.href, "content-length": 0, "cf-resized": "err=redirect" })
          .end();
    }
    if (!isHere && !response.destroyed) await this.#options.passOn!(edgeRequest);
    return true;
  }

  /** Resolves with whether this process has answered. */
  async #deliver(
    edgeRequest: EdgeHttpRequest,
    zone: { id: string; name: string },
    settings: TransformationSettings,
  ): Promise<boolean> {
    const { request } = edgeRequest;
    if (isOfTransformation(request.headers)) throw transformationErrors.loop();
    const asked = parseTransformation(edgeRequest.path, baseOf(edgeRequest));
    const { source } = asked;
    if (
      settings.mode === "on" &&
      !isOfZone(source, zone.name) &&
      !isAllowedOrigin(source, settings.allowedOrigins)
    )
      throw transformationErrors.notAllowed(source.hostname);
    return inChildSpan(edgeRequest.span, "image.transform", async (span) => {
      try {
        await this.#answerVisitor(edgeRequest, zone, asked, { ...nextVia(edgeRequest.via), span });
        return true;
      } catch (error) {
        if (error instanceof AnsweredElsewhere) return false; // no failure of the span
        throw error;
      }
    });
  }

  async #answerVisitor(
    edgeRequest: EdgeHttpRequest,
    zone: { id: string },
    asked: Pick<TransformationRequest, "transform" | "source">,
    via: Via,
  ): Promise<void> {
    const { request } = edgeRequest;
    const accountId = edgeRequest.zone?.configuration?.accountId ?? zone.id;
    const send: Send = async (url, from, to) =>
      url.hostname === edgeRequest.host
        ? edgeRequest.next(from, to, url.pathname + url.search, via)
        : this.#options.send(url, from, to, { accountId, via });
    await this.answer({ id: zone.id, accountId }, asked, fetchHeaders, send, request, edgeRequest.response);
  }

  /** Sends a transformed picture. Rejects with a DomainError while nothing has been sent. */
  async answer(
    owner: PictureOwner,
    { transform, source }: Pick<TransformationRequest, "transform" | "source">,
    headers: readonly string[],
    send: Send,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const left = new AbortController();
    const leave = (): void => left.abort(new Error("the visitor has left"));
    response.once("close", leave);
    const wanted = { owner, url: source, headers, send, signal: left.signal };
    const attempt = async (): Promise<void> =>
      this.#options.originals.use(wanted, (original) =>
        this.#answerFrom(original, source, transform, request, response, left.signal),
      );
    try {
      await again(attempt);
    } catch (error) {
      if (!left.signal.aborted) throw error;
    } finally {
      response.off("close", leave);
    }
  }

  async #answerFrom(
    original: Original,
    source: URL,
    asked: Transform,
    request: IncomingMessage,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const isNegotiated = asked.format === "auto" && asked.compression === undefined;
    const isHinted = asked.width === "auto" || asked.slowConnectionQuality !== undefined;
    const { transform, vary } = isHinted
      ? applyHints(asked, request.headers)
      : { transform: asked, vary: [] };
    const planned = planResult(
      transform,
      original.probe,
      isNegotiated ? accepted(request.headers.accept) : nothing,
    );
    const key = resultKey(original.sha256, planned.recipe);
    const etag = `"${planned.isUntransformed ? original.sha256.slice(0, 32) : key}"`;
    const { unchanged, whole } = pictureHeaders({
      etag,
      vary: [...(isNegotiated ? ["Accept"] : []), ...vary],
      format: planned.isUntransformed ? original.probe.format : planned.recipe.output.format,
      filename: source.pathname.split("/").at(-1) ?? "",
      modifiedOn: original.lastModified ?? new Date(original.receivedOn).toUTCString(),
      asksForHints: asked.width === "auto",
      warnings: planned.warnings,
    });
    const cacheControl = ["cache-control", original.cacheControl ?? "public, max-age=0, must-revalidate"];
    if (isNotModified(request, etag, Date.parse(original.lastModified ?? "") || original.receivedOn)) {
      response.writeHead(304, [...unchanged, ...cacheControl]).end();
      return;
    }
    const headers = [...whole, ...cacheControl];
    const stored = await this.#find(original, key, planned, headers, signal);
    await sendStored(request, response, stored, etag, headers);
  }

  async #find(
    original: Original,
    key: string,
    planned: PlannedResult,
    headers: string[],
    signal: AbortSignal,
  ): Promise<Stored> {
    const { results } = this.#options;
    const name = `${original.folder}/${key}`;
    const kept = planned.isUntransformed
      ? { path: original.path, sizeBytes: original.probe.sizeBytes }
      : original.isStorable
        ? await results.kept(name)
        : undefined;
    if (kept !== undefined) {
      headers.push(...hitHeaders);
      return kept;
    }
    const startedAt = performance.now();
    const { stored, times } = await results.make(original, name, planned, signal);
    headers.push(...missHeaders(performance.now() - startedAt, times));
    return stored;
  }
}

/** Repeats an attempt for which the file of a result, or of the picture itself, was removed meanwhile. */
async function again(attempt: () => Promise<void>): Promise<void> {
  for (let left = attemptsMax; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      const isGone = error instanceof StoredGone || error instanceof SourceGone;
      if (!isGone || left === 1) throw error;
    }
  }
}

const baseOf = ({ isTls, authority }: EdgeHttpRequest): string =>
  `${isTls ? "https" : "http"}://${authority}`;

const isOfZone = ({ hostname }: URL, zoneName: string): boolean =>
  hostname === zoneName || hostname.endsWith(`.${zoneName}`);

const isLoop = (error: unknown): boolean =>
  error instanceof DomainError && error.kind === "transformations.loop";

/** The redirect for a failed transform: a source of the zone itself, when the path asks for it. */
function fallbackOf(edgeRequest: EdgeHttpRequest, zoneName: string, error: unknown): URL | undefined {
  const rest = edgeRequest.path.slice(transformationPrefix.length);
  const slash = rest.indexOf("/");
  if (slash < 0 || !asksForRedirect(rest.slice(0, slash)) || isLoop(error)) return undefined;
  try {
    const source = sourceUrl(rest.slice(slash + 1), baseOf(edgeRequest));
    return isOfZone(source, zoneName) ? source : undefined;
  } catch {
    return undefined; // the first error is sent
  }
}
