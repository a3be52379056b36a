import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { unawaited } from "../util/uncaught.ts";
import { projectUrl } from "../util/module-url.ts";

/** Path of the dashboard on the API listener. */
export const dashboardPath = "/dashboard/";

const pages: ReadonlyMap<string, { file: string; type: string }> = new Map([
  ["images", { file: "images.html", type: "text/html; charset=utf-8" }],
  ["images.js", { file: "images.js", type: "text/javascript; charset=utf-8" }],
]);
const policy =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src blob:; connect-src *; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/** Answers requests for pages of the dashboard. Returns false for all other requests. */
export function serveDashboard(request: IncomingMessage, response: ServerResponse): boolean {
  const path = request.url?.split("?", 1)[0] ?? "";
  if (path !== "/dashboard" && !path.startsWith(dashboardPath)) return false;
  const page = pages.get(path.slice(dashboardPath.length));
  if (page !== undefined) unawaited(sendPage(page, response));
  else if (path.length <= dashboardPath.length)
    response.writeHead(302, { location: `${dashboardPath}images` }).end();
  else response.writeHead(404, { "content-type": "text/plain" }).end("Page not found\n");
  return true;
}

async function sendPage(
  { file, type }: { file: string; type: string },
  response: ServerResponse,
): Promise<void> {
  const body = await readFile(projectUrl(`dashboard/${file}`));
  response
    .writeHead(200, {
      "content-type": type,
      "content-length": body.length,
      "content-security-policy": policy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-cache",
    })
    .end(body);
}
