import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";
import type { Operation } from "../operation.ts";

/** Smaller answers fit into one packet. */
const bytesMin = 1024;

/** The fastest level of each coding: it costs a tenth of the default levels, for slightly larger answers. */
const codings = {
  zstd: (bytes: Uint8Array) =>
    promisify(zstdCompress)(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
  br: (bytes: Uint8Array) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  gzip: (bytes: Uint8Array) => promisify(gzip)(bytes, { level: 1 }),
} as const;
type Coding = keyof typeof codings;
const names = Object.keys(codings) as Coding[];

interface Compressed {
  body: string | Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

/**
 * The body of an answer as the client accepts it. Only answers to reading operations without secrets are compressed:
 * see docs/decisions/0024-compressed-answers.md. Threads do the work.
 */
export async function compressed(
  { method, answersSecret = false }: Operation,
  body: string | Uint8Array<ArrayBuffer>,
  acceptEncoding: string | undefined,
): Promise<Compressed> {
  if (method !== "GET" || answersSecret) return { body, headers: {} };
  const headers = { vary: "accept-encoding" };
  const coding = body.length < bytesMin ? undefined : chosen(acceptEncoding);
  if (coding === undefined) return { body, headers };
  const bytes = await codings[coding](typeof body === "string" ? Buffer.from(body) : body);
  return { body: new Uint8Array(bytes), headers: { ...headers, "content-encoding": coding } };
}

/** The coding with the highest weight (RFC 9110, 12.5.3); of several, the first of ours. */
export function chosen(acceptEncoding: string | undefined): Coding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = new Map<string, number>();
  for (const part of acceptEncoding.slice(0, headerLengthMax).toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((each) => each.trim());
    const given = parameters.find((each) => each.startsWith("q="))?.slice(2);
    const weight = given === undefined ? 1 : Number(given);
    if (weight >= 0 && weight <= 1) weights.set(name === "x-gzip" ? "gzip" : name, weight);
  }
  const weightOf = (name: string): number => weights.get(name) ?? weights.get("*") ?? 0;
  const unchanged = weights.get("identity") ?? 0;
  const [best] = names
    .filter((name) => weightOf(name) > 0 && weightOf(name) >= unchanged)
    .toSorted((a, b) => weightOf(b) - weightOf(a));
  return best;
}

/** Characters of the header that are read; more cannot be needed for the codings that this server knows. */
const headerLengthMax = 1000;
