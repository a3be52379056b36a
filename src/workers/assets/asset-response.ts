import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { AssetContents } from "./contents.ts";
import { acceptedEncoding, isCompressible, matchesHash, readRange, type Encoding } from "./negotiation.ts";
import type { HeaderChange, SitePlan, Site } from "./site.ts";

export interface AssetRequest {
  method: string;
  /** Without a port. */
  host: string;
  /** Path and query as in the request. */
  path: string;
  /** Names in lower case. */
  headers: IncomingHttpHeaders;
}

export interface AssetResponse {
  status: number;
  /** Names and values in turn. Do not change it: the same list answers many requests. */
  headers: readonly string[];
  body: Buffer | Readable | undefined;
}

type AssetPlan = SitePlan & { kind: "asset" };

/** Larger content is sent from the disk, unless it is compressed: compressed content is cached. */
const memoryBytesMax = 2 * 1024 * 1024;
const cacheControl = "public, max-age=0, must-revalidate";

/** Headers of plain responses for each plan, cached because most requests need nothing else. */
const plainHeaders = new WeakMap<SitePlan, Partial<Record<Encoding, string[]>>>();

/** The response to a request for an asset; synchronously if everything is in memory. */
export function assetResponse(
  site: Site,
  request: AssetRequest,
  contents: AssetContents,
): AssetResponse | Promise<AssetResponse> {
  const { method, host, path, headers } = request;
  const queryAt = path.indexOf("?");
  const plan = site.plan(host, queryAt < 0 ? path : path.slice(0, queryAt));
  if (plan.kind === "redirect") {
    const query = plan.query === "" && queryAt >= 0 ? path.slice(queryAt) : plan.query;
    return bare(plan, plan.status, ["location", `${plan.location}${query}${plan.fragment}`]);
  }
  if (plan.kind === "none") return bare(plan, 404, []);
  if (method !== "GET" && method !== "HEAD") return bare(plan, 405, ["allow", "GET, HEAD"]);

  const { file } = plan;
  const encoding = headers.range === undefined ? encodingOf(plan, headers["accept-encoding"]) : "identity";
  if (headers["if-none-match"] !== undefined && plan.status === 200) {
    if (matchesHash(headers["if-none-match"], file.hash))
      return { status: 304, headers: assetHeaders(plan, encoding, headers, undefined), body: undefined };
  }
  if (headers.range !== undefined && method === "GET" && plan.status === 200) {
    const ifRange = headers["if-range"];
    const range =
      ifRange === undefined || ifRange === `"${file.hash}"`
        ? readRange(headers.range, file.sizeBytes)
        : undefined;
    if (range !== undefined) return ranged(plan, range, headers, contents);
  }
  if (method === "HEAD" && encoding === "identity") {
    return {
      status: plan.status,
      headers: assetHeaders(plan, encoding, headers, file.sizeBytes),
      body: undefined,
    };
  }
  const bytes = contents.peek(file, encoding);
  if (bytes === undefined) return load(plan, encoding, method, headers, contents);
  return whole(plan, encoding, method, headers, bytes);
}

async function load(
  plan: AssetPlan,
  encoding: Encoding,
  method: string,
  headers: IncomingHttpHeaders,
  contents: AssetContents,
): Promise<AssetResponse> {
  const { file } = plan;
  if (encoding === "identity" && file.sizeBytes > memoryBytesMax) {
    return {
      status: plan.status,
      headers: assetHeaders(plan, encoding, headers, file.sizeBytes),
      body: await contents.stream(file),
    };
  }
  return whole(plan, encoding, method, headers, await contents.load(file, encoding));
}

function whole(
  plan: AssetPlan,
  encoding: Encoding,
  method: string,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
): AssetResponse {
  const body = method === "HEAD" ? undefined : bytes;
  if (headers.authorization !== undefined || headers.range !== undefined)
    return { status: plan.status, headers: assetHeaders(plan, encoding, headers, bytes.length), body };
  let byEncoding = plainHeaders.get(plan);
  if (byEncoding === undefined) {
    byEncoding = {};
    plainHeaders.set(plan, byEncoding);
  }
  const list = (byEncoding[encoding] ??= assetHeaders(plan, encoding, headers, bytes.length));
  return { status: plan.status, headers: list, body };
}

async function ranged(
  plan: AssetPlan,
  range: { start: number; end: number } | "unsatisfiable",
  headers: IncomingHttpHeaders,
  contents: AssetContents,
): Promise<AssetResponse> {
  const { file } = plan;
  if (range === "unsatisfiable") return bare(plan, 416, ["content-range", `bytes */${file.sizeBytes}`]);
  const { start, end } = range;
  const list = assetHeaders(plan, "identity", headers, end - start + 1);
  const cached = contents.peek(file, "identity");
  return {
    status: 206,
    headers: [...list, "content-range", `bytes ${start}-${end}/${file.sizeBytes}`],
    body: cached === undefined ? await contents.stream(file, range) : cached.subarray(start, end + 1),
  };
}

function encodingOf(plan: AssetPlan, acceptEncoding: string | string[] | undefined): Encoding {
  if (acceptEncoding === undefined || !mayCompress(plan)) return "identity";
  return acceptedEncoding(String(acceptEncoding));
}

const compressiblePlans = new WeakMap<SitePlan, boolean>();
function mayCompress(plan: AssetPlan): boolean {
  let may = compressiblePlans.get(plan);
  if (may === undefined) {
    const isEncoded = plan.changes.some(
      ({ name, value }) =>
        (name === "content-encoding" && value !== undefined) ||
        (name === "cache-control" && /\bno-transform\b/i.test(value ?? "")),
    );
    may = !isEncoded && isCompressible(plan.contentType, plan.file.sizeBytes);
    compressiblePlans.set(plan, may);
  }
  return may;
}

function assetHeaders(
  plan: AssetPlan,
  encoding: Encoding,
  request: IncomingHttpHeaders,
  length: number | undefined,
): string[] {
  const headers: string[] = [];
  if (plan.contentType !== "") headers.push("content-type", plan.contentType);
  headers.push("etag", encoding === "identity" ? `"${plan.file.hash}"` : `"${plan.file.hash}-${encoding}"`);
  if (request.authorization === undefined && request.range === undefined)
    headers.push("cache-control", cacheControl);
  if (plan.status === 200) headers.push("accept-ranges", "bytes");
  if (mayCompress(plan)) headers.push("vary", "accept-encoding");
  if (encoding !== "identity") headers.push("content-encoding", encoding);
  headers.push("cf-cache-status", "HIT");
  const changed = change(headers, plan.changes);
  if (length !== undefined) changed.push("content-length", String(length));
  return changed;
}

const bare = (plan: SitePlan, status: number, headers: string[]): AssetResponse => ({
  status,
  headers: [...change(headers, plan.changes), "content-length", "0"],
  body: undefined,
});

/** Headers that `_headers` cannot change, because the body's framing depends on them. */
const fixedHeaders: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "connection"]);

/**
 * Applies `_headers`: the first rule that sets a header replaces the default, later rules add to it unless
 * one dropped it.
 */
function change(headers: string[], changes: readonly HeaderChange[]): string[] {
  let list = headers;
  const set = new Set<string>();
  for (const { name, value } of changes) {
    if (fixedHeaders.has(name)) continue;
    if (value === undefined || !set.has(name)) list = without(list, name);
    if (value === undefined) continue;
    const at = name === "set-cookie" ? -1 : indexOfName(list, name);
    if (at < 0) list.push(name, value);
    else list[at + 1] += `, ${value}`;
    set.add(name);
  }
  return list;
}

/** Compares names only: the value of one header may equal the name of another, as with `vary`. */
const indexOfName = (headers: readonly string[], name: string): number =>
  headers.findIndex((each, at) => at % 2 === 0 && each === name);

function without(headers: readonly string[], name: string): string[] {
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i] !== name) kept.push(headers[i]!, headers[i + 1]!);
  return kept;
}
