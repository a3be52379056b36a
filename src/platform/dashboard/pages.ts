import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { unawaited } from "../util/uncaught.ts";
import { assetsPath, dashboardPath, type Bundle, type BundledFile } from "./bundle.ts";
import type { DashboardFiles } from "./files.ts";

const sessionPath = `${dashboardPath}session`;

/** The parts that the pages need. */
export interface DashboardNeeds {
  files: Pick<DashboardFiles, "latest" | "current">;
  /** Answers the console's sign-in calls. */
  answerSession: (request: IncomingMessage, response: ServerResponse) => void;
  /** Other origins that the console may load from: that of delivered pictures. */
  origins: () => readonly string[];
  logger: Logger;
}

type Pages = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Answers requests for the console. The result returns false for all other requests. */
export const dashboardPages =
  (needed: DashboardNeeds): Pages =>
  (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    if (path !== "/dashboard" && !path.startsWith(dashboardPath)) return false;
    if (path === sessionPath) needed.answerSession(request, response);
    else if (request.method !== "GET" && request.method !== "HEAD")
      sendText(response, 405, "Expected GET or HEAD\n");
    else if (path === "/dashboard") response.writeHead(302, { location: dashboardPath }).end();
    else unawaited(sendFile(path, request, response, needed));
    return true;
  };

async function sendFile(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  { files, logger, origins }: DashboardNeeds,
): Promise<void> {
  const isAsset = path.startsWith(assetsPath);
  const bundle = await (isAsset ? files.current() : files.latest()).catch((error: unknown) => {
    logger.error({ err: error }, "the console could not be built");
    return undefined;
  });
  if (bundle === undefined)
    return sendText(
      response,
      503,
      "The console could not be built. See the server's log. The API is not affected.\n",
    );
  const name = path.slice(assetsPath.length);
  if (!isAsset)
    return send(request, response, pageAt(path, bundle), {
      ...pageHeaders(bundle.scriptHash, origins()),
      "cache-control": "no-cache",
    });
  if (!Object.hasOwn(bundle.assets, name)) return sendText(response, 404, "Page not found\n");
  send(request, response, bundle.assets[name]!, { "cache-control": "public, max-age=31536000, immutable" });
}

/** The page, which loads the code of the screen at its address together with the first file. */
function pageAt(path: string, { page, screens }: Bundle): BundledFile {
  const segments = path.slice(dashboardPath.length).split("/");
  const screen = screens.find(({ pattern }) => {
    const wanted = pattern.slice(1).split("/");
    return (
      wanted.length === segments.length &&
      wanted.every((each, index) => each.startsWith(":") || each === segments[index])
    );
  });
  const links = screen?.names.map((name) => `<link rel="modulepreload" href="${assetsPath}${name}" />`) ?? [];
  const text = page.replace("{screen}", links.join(""));
  return { type: "text/html; charset=utf-8", body: Buffer.from(text).toString("base64") };
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  file: BundledFile,
  headers: Record<string, string>,
): void {
  const accepted = request.headers["accept-encoding"]?.toString() ?? "";
  const coding = (["br", "gzip"] as const).find(
    (each) =>
      file[each] !== undefined && new RegExp(`\\b${each}\\b(?!;\\s*q=0(?:\\.0*)?(?:,|$))`).test(accepted),
  );
  const body = Buffer.from(coding === undefined ? file.body : file[coding]!, "base64");
  response.writeHead(200, {
    "content-type": file.type,
    "content-length": body.length,
    ...(coding !== undefined && { "content-encoding": coding }),
    vary: "accept-encoding",
    ...securityHeaders,
    ...headers,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", ...securityHeaders }).end(text);
}

const securityHeaders = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Scripts and styles come from the listener alone, except the script in the page; text never becomes code. */
function pageHeaders(scriptHash: string, origins: readonly string[]): Record<string, string> {
  const others = origins.map((origin) => ` ${origin}`).join("");
  return {
    "content-security-policy": [
      "default-src 'none'",
      `script-src 'self' '${scriptHash}'`,
      "style-src 'self'",
      `img-src 'self' blob:${others}`,
      `connect-src 'self'${others}`,
      "font-src 'self'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].join("; "),
  };
}
