import { Readable } from "node:stream";
import { cellHeaders } from "../../sandbox/protocol.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import type { RequestCf } from "../../edge/client-info/request-cf.ts";
import { scriptHeaders } from "../../edge/http/headers.ts";
import { newRay } from "../../edge/request/ray.ts";
import { asciiJson } from "../../platform/util/ascii-json.ts";
import type { RunVisitor } from "../runtime/run-root.ts";
import { previewErrors } from "./errors.ts";
import type { Asked } from "./metadata.ts";

/** The values that the platform adds to a request. */
export interface VisitorOptions {
  clientAddress: string;
  requestCf: RequestCf;
  /** Code of this node's location. */
  colo: string;
}

/** The request of a preview: as the code gets it, and as what it calls sees its visitor. */
export interface PreviewRequest {
  request: CellRequest;
  visitor: RunVisitor;
}

/**
 * Makes the request of a visitor. It belongs to no zone: a fetch of its own host is one of the
 * outside.
 */
export function previewRequest(
  { method, url: text, headers: given = {}, body }: Asked,
  { clientAddress, requestCf, colo }: VisitorOptions,
): PreviewRequest {
  const url = new URL(text);
  const path = url.pathname + url.search;
  refuseDropped(given);
  const headers = edgeHeaders(url, Object.entries(given).flat(), clientAddress, newRay(colo));
  const { subdivision2Code: _, ...cf } = requestCf.forTrace(
    { ip: clientAddress, path, headers: given },
    noZone,
  );
  const cfText = asciiJson(cf);
  const bytes =
    body && Buffer.from(body.base64 ?? body.plain_text ?? "", body.base64 === undefined ? "utf8" : "base64");
  if (bytes !== undefined) headers.push("content-length", String(bytes.length));
  headers.push(cellHeaders.proto, url.protocol.slice(0, -1));
  return {
    request: {
      method,
      path,
      headers,
      body: bytes === undefined ? null : Readable.from([bytes], { objectMode: false }),
      cf: cfText,
    },
    visitor: { host: url.hostname, clientAddress, cf: () => cfText, span: undefined, zone: undefined },
  };
}

const noZone = "";
/** The edge refuses or replaces these. */
const refused: ReadonlySet<string> = new Set(["cdn-loop", "content-length"]);

/** Throws for a header that the edge would drop or replace. */
function refuseDropped(given: Readonly<Record<string, string>>): void {
  const dropped = Object.keys(given).find((name) => refused.has(name.toLowerCase()) || !passes(name));
  if (dropped !== undefined) throw previewErrors.header(dropped);
}

const edgeHeaders = (url: URL, rawHeaders: string[], clientAddress: string, ray: string): string[] =>
  scriptHeaders({
    rawHeaders,
    host: url.host,
    clientAddress,
    scheme: url.protocol === "http:" ? "http" : "https",
    ray,
  });

const anyUrl = new URL("https://host/");
const addedLength = edgeHeaders(anyUrl, [], "", "").length;
const passes = (name: string): boolean => edgeHeaders(anyUrl, [name, ""], "", "").length > addedLength;
