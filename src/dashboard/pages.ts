import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";

/** Where the dashboard is on the API listener. */
export const dashboardPath = "/dashboard/";

const pages: Record<string, { file: string; type: string }> = {
  images: { file: "images.html", type: "text/html; charset=utf-8" },
  "images.js": { file: "images.js", type: "text/javascript; charset=utf-8" },
};
const policy =
  "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src blob:; connect-src *; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/** Answers a request for a page of the dashboard, and leaves the others. */
export function serveDashboard(request: IncomingMessage, response: ServerResponse): boolean {
  const path = request.url?.split("?", 1)[0] ?? "";
  if (path !== "/dashboard" && !path.startsWith(dashboardPath)) return false;
  const page = pages[path.slice(dashboardPath.length)];
  if (page !== undefined) void sendPage(page, response);
  else if (path.length <= dashboardPath.length)
    response.writeHead(302, { location: `${dashboardPath}images` }).end();
  else response.writeHead(404, { "content-type": "text/plain" }).end("There is no such page.\n");
  return true;
}

async function sendPage(
  { file, type }: { file: string; type: string },
  response: ServerResponse,
): Promise<void> {
  const body = await readFile(new URL(`../../dashboard/${file}`, import.meta.url));
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
