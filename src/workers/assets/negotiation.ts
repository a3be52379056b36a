export type Encoding = "identity" | "br" | "gzip";

const compressible =
  /^(?:text\/(?!event-stream)|application\/(?:javascript|json|xml|wasm|x-javascript|manifest\+json|rtf|x-ndjson)|font\/(?:ttf|otf)|image\/(?:svg\+xml|bmp|x-icon|vnd\.microsoft\.icon)|[^;]+\+(?:json|xml)\b)/i;
/** Below the size of a packet compression gains nothing. */
const compressedBytesMin = 1024;

export const isCompressible = (contentType: string, sizeBytes: number): boolean =>
  sizeBytes >= compressedBytesMin && compressible.test(contentType);

const known = new Map<string, Encoding>();
const knownMax = 1000;

/** The best encoding that an Accept-Encoding header allows. Cached, because few different headers occur. */
export function acceptedEncoding(header: string | undefined): Encoding {
  if (header === undefined) return "identity";
  let encoding = known.get(header);
  if (encoding === undefined) {
    encoding = readAcceptEncoding(header);
    if (known.size >= knownMax) known.clear();
    known.set(header, encoding);
  }
  return encoding;
}

function readAcceptEncoding(header: string): Encoding {
  const weights = new Map<string, number>();
  for (const item of header.toLowerCase().split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.split("=")[1];
    weights.set(name, weight === undefined ? 1 : Number(weight) || 0);
  }
  const weightOf = (name: string): number => weights.get(name) ?? weights.get("*") ?? 0;
  const [br, gzip] = [weightOf("br"), weightOf("gzip")];
  if (br > 0 && br >= gzip) return "br";
  return gzip > 0 ? "gzip" : "identity";
}

/** Whether If-None-Match contains this hash, with any encoding. */
export const matchesHash = (ifNoneMatch: string, hash: string): boolean =>
  ifNoneMatch.trim() === "*" ||
  ifNoneMatch.split(",").some((tag) => /^\s*(?:W\/)?"([^"]*?)(?:-br|-gzip)?"\s*$/.exec(tag)?.[1] === hash);

/** Parses a single range of bytes; undefined for several ranges or another unit, for which the whole file is sent. */
export function readRange(
  header: string,
  sizeBytes: number,
): { start: number; end: number } | "unsatisfiable" | undefined {
  const parts = /^bytes\s*=([\d\s]*)-([\d\s]*)$/i
    .exec(header)
    ?.slice(1)
    .map((part) => part.trim());
  if (parts?.every((part) => /^\d*$/.test(part)) !== true) return undefined;
  const [first = "", last = ""] = parts;
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? "unsatisfiable" : { start: sizeBytes - length, end: sizeBytes - 1 };
  }
  const start = Number(first);
  const end = last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= sizeBytes ? "unsatisfiable" : { start, end };
}
