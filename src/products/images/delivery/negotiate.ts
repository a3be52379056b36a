import type { IncomingHttpHeaders } from "node:http";
import { LRUCache } from "lru-cache";
import type { Transform } from "../recipe/options.ts";
import type { Accepted } from "../recipe/recipe.ts";
import { entriesMax } from "../../../platform/util/loading-cache.ts";

const known = new LRUCache<string, Accepted>(entriesMax(500));
const nothing: Accepted = { avif: false, webp: false };
/** Longer Accept headers are ignored. */
const acceptCharactersMax = 1024;

/**
 * The modern formats that a client names. Wildcards do not count: clients without these formats send them
 * too.
 */
export function accepted(accept: string | undefined): Accepted {
  if (accept === undefined || accept.length > acceptCharactersMax) return nothing;
  let found = known.get(accept);
  if (found === undefined) {
    found = { avif: names(accept, "image/avif"), webp: names(accept, "image/webp") };
    known.set(accept, found);
  }
  return found;
}

function names(accept: string, type: string): boolean {
  return accept.split(",").some((item) => {
    const [name, ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    return name === type && (quality === undefined || Number(quality.slice(2)) > 0);
  });
}

const autoWidths = [320, 768, 960, 1200];

/** Headers besides Accept on which the response depends. */
export interface Hinted {
  transform: Transform;
  vary: string[];
}

/** Replaces `width=auto` and `slow-connection-quality` by values from the client hints. */
export function applyHints(transform: Transform, headers: IncomingHttpHeaders): Hinted {
  const vary: string[] = [];
  const { slowConnectionQuality, ...rest } = transform;
  const resolved: Transform = { ...rest };
  if (transform.width === "auto") resolved.width = autoWidth(headers, vary);
  if (slowConnectionQuality !== undefined) {
    vary.push("rtt", "save-data", "ect", "downlink");
    if (isSlow(headers)) resolved.quality = slowConnectionQuality;
  }
  return { transform: resolved, vary };
}

const number = (headers: IncomingHttpHeaders, name: string): number | undefined => {
  const value = Number(headers[name]);
  return Number.isFinite(value) && value > 0 ? value : undefined;
};

function autoWidth(headers: IncomingHttpHeaders, vary: string[]): number {
  vary.push("Sec-CH-Viewport-Width", "Sec-CH-DPR", "Viewport-Width", "DPR", "Width");
  const resource = number(headers, "width");
  const viewport = number(headers, "sec-ch-viewport-width") ?? number(headers, "viewport-width");
  const dpr = number(headers, "sec-ch-dpr") ?? number(headers, "dpr") ?? 1;
  let wanted = resource ?? (viewport === undefined ? undefined : viewport * dpr);
  if (wanted === undefined) {
    vary.push("User-Agent");
    const agent = headers["user-agent"] ?? "";
    wanted = /ipad|tablet/i.test(agent) ? 768 : /mobi|android|iphone/i.test(agent) ? 320 : 1200;
  }
  return autoWidths.find((width) => width >= wanted) ?? autoWidths.at(-1)!;
}

const isSlow = (headers: IncomingHttpHeaders): boolean =>
  (number(headers, "rtt") ?? 0) > 150 ||
  headers["save-data"] === "on" ||
  /^(slow-2g|2g|3g)$/.test(String(headers["ect"] ?? "")) ||
  (number(headers, "downlink") ?? Number.POSITIVE_INFINITY) < 5;
