import type { ServerResponse } from "node:http";
import type { JobTimes } from "../engine/job.ts";
import { contentTypes } from "../image.ts";
import { engineVersion, type Output } from "../recipe/recipe.ts";
import { safeHeaders } from "./respond.ts";

const version = engineVersion.replaceAll(/[^\d.]+/g, "-").replace(/^-|-$/g, "");

/** Extra headers of a cached result, as alternating names and values. */
export const hitHeaders: readonly string[] = [
  "cf-cache-status",
  "HIT",
  "cf-resized",
  `internal=ok/h q=0 n=0 c=0 v=${version}`,
];

/**
 * Extra headers of a result that was made for this response: how long the response waited for it, and the times of the
 * job, which other requests may have started before.
 */
export function missHeaders(tookMs: number, { queuedMs, workedMs }: JobTimes): string[] {
  const rounded = Math.round(tookMs);
  return [
    "cf-cache-status",
    "MISS",
    "cf-resized",
    `internal=ok/m q=0 n=${rounded} c=0 v=${version}`,
    "server-timing",
    `queue;dur=${queuedMs.toFixed(1)}, work;dur=${workedMs.toFixed(1)}, transform;dur=${rounded}`,
  ];
}

/** Headers of a result: those that every response has, and those that describe the body. */
export function pictureHeaders(picture: {
  etag: string;
  vary: readonly string[];
  format: Output["format"];
  filename: string;
  /** An HTTP date. */
  modifiedOn: string;
  asksForHints: boolean;
  warnings: readonly string[];
}): { unchanged: readonly string[]; whole: readonly string[] } {
  const { etag, vary, format, filename, modifiedOn, asksForHints, warnings } = picture;
  const unchanged = ["access-control-allow-origin", "*", "etag", etag];
  if (vary.length > 0) unchanged.push("vary", vary.join(", "));
  const whole = [
    ...unchanged,
    ...Object.entries(safeHeaders).flat(),
    "content-type",
    format === "json" ? "application/json" : contentTypes[format],
    "content-disposition",
    disposition(filename, format),
    "last-modified",
    modifiedOn,
    "accept-ranges",
    "bytes",
  ];
  if (asksForHints) whole.push("accept-ch", "Sec-CH-Viewport-Width, Sec-CH-DPR");
  if (warnings.length > 0)
    whole.push("warning", warnings.map((text) => `cf-images 299 "${text}"`).join(", "));
  return { unchanged, whole };
}

/** The file's own name with the extension of its new format. */
function disposition(filename: string, format: string): string {
  const stem = filename.replace(/\.[^.]*$/, "").replaceAll(/[^\w. -]/g, "_") || "image";
  const ending = format === "jpeg" ? "jpg" : format;
  return `inline; filename="${stem}.${ending}"`;
}

export function answerPreflight(response: ServerResponse): void {
  response
    .writeHead(204, {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD, OPTIONS",
      "access-control-allow-headers": "*",
      "access-control-max-age": "86400",
    })
    .end();
}
