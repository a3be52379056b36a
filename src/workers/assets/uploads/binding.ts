import type { BindingHandler } from "../../binding.ts";
import type { ScriptAssets } from "../config.ts";
import { sendResponse, type AssetServer } from "../asset-server.ts";
import { bindingType } from "../../binding-type.ts";

/** A binding to the script's own static assets. */
export const assetsType = bindingType({
  fields: {},
  check: async (_, { hasAssets }) =>
    hasAssets ? undefined : "static assets, but the upload has neither metadata.assets nor keep_assets",
});

/** Handles the `assets` binding: a script fetches its static assets as a visitor would. */
export const assetsBinding =
  (
    server: AssetServer,
    assetsOf: (versionId: string) => Promise<ScriptAssets | undefined>,
  ): BindingHandler<"assets"> =>
  async ({ caller: { versionId }, url, request, response }) => {
    let site = server.known(versionId);
    if (site === undefined) {
      const found = await assetsOf(versionId);
      if (found === undefined) {
        response.writeHead(404, { "content-length": 0 }).end();
        return;
      }
      site = server.site(versionId, found.manifest, found.config);
    }
    const host = String(request.headers["x-asset-host"] ?? "").replace(/:\d+$/, "");
    const { method = "GET", headers } = request;
    const path = url.pathname + url.search;
    const answer = await server.answer(await site, { method, host, path, headers });
    request.resume();
    await sendResponse(response, answer, []);
  };
