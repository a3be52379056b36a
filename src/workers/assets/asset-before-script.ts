import type { IncomingMessage, ServerResponse } from "node:http";
import type { ScriptAssets } from "./config.ts";
import { sendResponse, type AssetServer } from "./asset-server.ts";

/** The part of a version that decides whether an asset comes first. */
interface ServedVersion {
  id: string;
  /** Empty for a script of static assets only. */
  modules: readonly unknown[];
  assets?: ScriptAssets;
}

export interface ScriptAssetRequest {
  request: IncomingMessage;
  response: ServerResponse;
  /** Without a port. */
  host: string;
  /** Path and query. */
  path: string;
  /** Added to the response: names and values in turn. */
  headers: readonly string[];
}

/** Answers with a static asset if one comes before the script; the script then does not run. */
export async function respondWithAsset(
  server: AssetServer,
  { id, assets, modules }: ServedVersion,
  { request, response, host, path, headers: more }: ScriptAssetRequest,
): Promise<boolean> {
  if (assets === undefined) return false;
  const site = await server.site(id, assets.manifest, assets.config);
  const queryAt = path.indexOf("?");
  const pathname = queryAt < 0 ? path : path.slice(0, queryAt);
  const { method = "GET", headers } = request;
  const isNavigation = headers["sec-fetch-mode"] === "navigate";
  if (modules.length > 0 && site.isForScript(host, pathname, isNavigation)) return false;
  const answer = await server.answer(site, { method, host, path, headers });
  request.resume();
  await sendResponse(response, answer, more);
  return true;
}
