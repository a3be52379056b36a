import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Blobs } from "../../platform/storage/blobs.ts";
import { assetResponse, type AssetResponse, type AssetRequest } from "./asset-response.ts";
import type { Assets } from "./assets.ts";
import type { AssetConfig } from "./config.ts";
import { AssetContents } from "./contents.ts";
import { Site } from "./site.ts";

const sitesMax = 2000;
/** Files of all sites in memory; each takes some hundred bytes. */
const filesMax = 500_000;

/** Serves deployed assets. Recently used sites and contents are in memory. */
export class AssetServer {
  readonly #assets: Assets;
  readonly #blobs: Blobs;
  readonly #cacheBytes: number;
  readonly #sites = new Map<string, Site | Promise<Site>>();
  #fileCount = 0;
  #contents: AssetContents | undefined;

  constructor(assets: Assets, blobs: Blobs, options: { cacheBytes: number }) {
    this.#assets = assets;
    this.#blobs = blobs;
    this.#cacheBytes = options.cacheBytes;
  }

  /** The site of a script version, which is always the same for a key; synchronously if it is in memory. */
  site(key: string, manifestId: string, config: AssetConfig): Site | Promise<Site> {
    const known = this.#sites.get(key);
    if (known !== undefined) return known;
    const loading = this.#load(manifestId, config).then(
      (site) => {
        this.#sites.set(key, site);
        this.#fileCount += site.fileCount;
        this.#forgetOldest(key);
        return site;
      },
      (error: unknown) => {
        this.#sites.delete(key);
        throw error;
      },
    );
    this.#sites.set(key, loading);
    return loading;
  }

  #forgetOldest(newest: string): void {
    for (const [key, site] of this.#sites) {
      if (this.#sites.size <= sitesMax && this.#fileCount <= filesMax) return;
      // A site that is still loading counts later.
      if (key === newest || site instanceof Promise) continue;
      this.#sites.delete(key);
      this.#fileCount -= site.fileCount;
    }
  }

  /** A site that is in memory or loading. */
  known(key: string): Site | Promise<Site> | undefined {
    return this.#sites.get(key);
  }

  /** For a site that `site` has returned. */
  answer(site: Site, request: AssetRequest): AssetResponse | Promise<AssetResponse> {
    return assetResponse(site, request, this.#contents!);
  }

  async #load(manifestId: string, config: AssetConfig): Promise<Site> {
    const [loaded, { lookup }, { LRUCache }] = await Promise.all([
      this.#assets.load(manifestId),
      import("mrmime"),
      import("lru-cache"),
    ]);
    if (loaded === undefined) throw new Error(`the asset manifest ${manifestId} is missing`);
    this.#contents ??= new AssetContents(
      this.#blobs,
      new LRUCache({ maxSize: this.#cacheBytes, sizeCalculation: (bytes: Buffer) => bytes.length + 200 }),
    );
    return new Site(
      config,
      loaded.entries,
      loaded.files,
      (path) => lookup(path) ?? "application/octet-stream",
    );
  }
}

/** Sends a response. `more` are further headers, names and values in turn. */
export async function sendResponse(
  response: ServerResponse,
  { status, headers, body }: AssetResponse,
  more: readonly string[],
): Promise<void> {
  response.writeHead(status, more.length === 0 ? (headers as string[]) : [...headers, ...more]);
  if (body === undefined) response.end();
  else if (Buffer.isBuffer(body)) response.end(body);
  else await pipeline(body, response);
}
