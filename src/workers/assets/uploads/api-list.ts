import { z } from "zod";
import { operationsFor, type Call } from "../../../control/api/operation.ts";
import { pageQuery, paginate } from "../../../control/api/pagination.ts";
import type { Scripts } from "../../scripts/scripts.ts";
import type { Versions } from "../../scripts/versions/versions.ts";
import type { ScriptAssets } from "../config.ts";
import type { Assets } from "../assets.ts";
import { assetErrors } from "../errors.ts";
import { assetErrorCodes } from "./api-errors.ts";

/* The assets of a script, by path. The public API has no list of them. */

interface Services {
  assets: Assets;
  scripts: Scripts;
  versions: Versions;
}

const { listOperation, operation } = operationsFor<Services>(assetErrorCodes);

const path = "/accounts/{account_id}/workers/scripts/{script_name}/edge/assets";
const read = { scope: "account", permission: "workers_scripts:read" } as const;

const FileSchema = z
  .object({ path: z.string(), hash: z.string(), size: z.int(), content_type: z.string().nullable() })
  .meta({ id: "AssetFile" });
const RulesSchema = z
  .object({
    html_handling: z.string(),
    not_found_handling: z.string(),
    base_path: z.string(),
    run_worker_first: z.union([z.boolean(), z.array(z.string())]),
    headers: z.array(
      z.object({
        path: z.string(),
        set: z.array(z.object({ name: z.string(), value: z.string() })),
        unset: z.array(z.string()),
      }),
    ),
    redirects: z.array(z.object({ from: z.string(), to: z.string(), status: z.int(), line: z.int() })),
  })
  .meta({ id: "AssetRules" });

/** The assets of the version that runs now. */
async function assetsOf({
  account,
  params,
  services,
}: Call<unknown, unknown, Services>): Promise<ScriptAssets> {
  const name = params["script_name"]!;
  const { content } = await services.versions.current(services.scripts.get({ accountId: account.id }, name));
  if (content.assets === null) throw assetErrors.none(name);
  return content.assets;
}

export const assetListOperations = [
  listOperation({
    id: "script_assets_list",
    method: "GET",
    path,
    summary: "List the static assets of a script's current version by path",
    access: read,
    query: pageQuery({ default: 200, max: 1000 }).extend({ search: z.string().max(1024).optional() }),
    result: FileSchema,
    async handle(call) {
      const { search = "" } = call.query;
      const { manifest } = await assetsOf(call);
      const found = await call.services.assets.load(manifest);
      if (found === undefined) throw new Error(`the asset manifest ${manifest} is missing`);
      const wanted = found.entries.filter((entry) => entry.path.includes(search));
      const sorted = wanted.toSorted((a, b) => (a.path < b.path ? -1 : 1));
      const page = paginate(sorted, call.query);
      return {
        ...page,
        items: page.items.map((entry) => ({
          path: entry.path,
          hash: entry.hash,
          size: entry.sizeBytes,
          content_type: found.files.get(entry.hash)?.contentType ?? null,
        })),
      };
    },
  }),
  operation({
    id: "script_assets_rules",
    method: "GET",
    path: `${path}/rules`,
    summary:
      "Get how the static assets of a script's current version are served: headers, redirects and settings",
    access: read,
    result: RulesSchema,
    async handle(call) {
      const { config } = await assetsOf(call);
      const { runWorkerFirst: first } = config;
      return {
        html_handling: config.htmlHandling,
        not_found_handling: config.notFoundHandling,
        base_path: config.basePath,
        run_worker_first:
          typeof first === "boolean" ? first : [...first.worker, ...first.assets.map((each) => `!${each}`)],
        headers: config.headers.map(({ path: pattern, set, unset }) => ({
          path: pattern,
          set: set.map(([name, value]) => ({ name, value })),
          unset: [...unset],
        })),
        redirects: [...config.redirects.fixed, ...config.redirects.patterns],
      };
    },
  }),
];
