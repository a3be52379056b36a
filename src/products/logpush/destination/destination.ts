import { validateHeaderName, validateHeaderValue } from "node:http";
import { show, showList } from "../../../platform/util/json.ts";

/** Where the files of a job go. Contains credentials, so never show it as a whole. */
export type LogDestination = HttpsDestination | S3Destination;

export interface HttpsDestination {
  kind: "https";
  url: URL;
  headers: Readonly<Record<string, string>>;
}

export interface S3Destination {
  kind: "s3";
  bucket: string;
  /** Without a slash at either end. May contain {DATE}. */
  path: string;
  region: string;
  /** Scheme, host and port. */
  endpoint: URL;
  /** Whether the bucket is the first part of the path, instead of the host. */
  isInPath: boolean;
  accessKeyId: string;
  secretAccessKey: string;
  /** Server-side encryption. */
  encryption: string | undefined;
}

/** A destination that cannot be used, and why, without its secrets. */
export class DestinationFault extends Error {}

export const destinationLengthMax = 4096;
const headerPrefix = "header_";
const headersMax = 20;
/** Headers that the upload sets itself. */
const ownHeaders = new Set(
  "connection content-encoding content-length expect host keep-alive te trailer transfer-encoding upgrade".split(
    " ",
  ),
);
const s3Parameters = ["access-key-id", "secret-access-key", "region", "endpoint", "sse"] as const;
const hidden = "REDACTED";

/** Parses `s3://…` and `https://…` in the public form. Throws DestinationFault. */
export function readDestination(text: string): LogDestination {
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === "https") return readHttps(text);
  if (scheme === "s3") return readS3(text);
  throw new DestinationFault(
    `Expected a destination s3://BUCKET/PATH?… or https://HOST/PATH?… but received ${scheme === undefined ? "another text" : `the scheme ${show(scheme)}, which is not supported`}`,
  );
}

function readHttps(text: string): HttpsDestination {
  const url = urlOf(text);
  if (url.username !== "" || url.password !== "")
    throw new DestinationFault("Expected no user in the URL. Use header_Authorization");
  const headers: Record<string, string> = {};
  for (const [parameter, value] of [...url.searchParams]) {
    if (!parameter.startsWith(headerPrefix)) continue;
    const name = parameter.slice(headerPrefix.length);
    checkHeader(name, value);
    headers[name.toLowerCase()] = value;
    url.searchParams.delete(parameter);
  }
  if (Object.keys(headers).length > headersMax)
    throw new DestinationFault(`Expected at most ${headersMax} headers`);
  url.hash = "";
  return { kind: "https", url, headers };
}

function checkHeader(name: string, value: string): void {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new DestinationFault(`Expected a header's name and value for ${headerPrefix}${show(name)}`);
  }
  if (ownHeaders.has(name.toLowerCase()))
    throw new DestinationFault(`Expected another header than ${name}, which the upload sets itself`);
}

function readS3(text: string): S3Destination {
  const match = /^s3:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(text);
  const bucket = match?.[1] ?? "";
  if (match === null || !/^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/.test(bucket))
    throw new DestinationFault("Expected s3://BUCKET/PATH?region=…");
  const parameters = new URLSearchParams(match[3] ?? "");
  const strange = [...parameters.keys()].find((name) => !(s3Parameters as readonly string[]).includes(name));
  if (strange !== undefined)
    throw new DestinationFault(
      `Expected the parameters ${showList(s3Parameters)} but received ${show(strange)}`,
    );
  const value = (name: (typeof s3Parameters)[number]): string | undefined =>
    parameters.get(name) ?? undefined;
  const [accessKeyId, secretAccessKey] = [value("access-key-id"), value("secret-access-key")];
  if (!accessKeyId || !secretAccessKey)
    throw new DestinationFault(
      "Expected access-key-id and secret-access-key: this installation has no account of its own at the store",
    );
  const region = value("region") ?? "us-east-1";
  if (!/^[\w-]{1,64}$/.test(region)) throw new DestinationFault("Expected the name of a region for region");
  const endpoint = value("endpoint");
  const encryption = value("sse");
  if (encryption !== undefined && encryption !== "AES256")
    throw new DestinationFault("Expected AES256 for sse. Other encryption is not supported");
  return {
    kind: "s3",
    bucket,
    path: pathOf(match[2] ?? ""),
    region,
    endpoint: endpointOf(endpoint ?? `https://s3.${region}.amazonaws.com`),
    // A certificate of AWS covers names without dots only.
    isInPath: endpoint !== undefined || bucket.includes("."),
    accessKeyId,
    secretAccessKey,
    encryption,
  };
}

function pathOf(text: string): string {
  let path: string;
  try {
    path = decodeURIComponent(text).replaceAll(/^\/+|(?<!\/)\/+$/g, "");
  } catch {
    throw new DestinationFault("Expected valid percent-encoding in the path");
  }
  const isStrange = (part: string): boolean => part === "." || part === ".." || part === "";
  // oxlint-disable-next-line no-control-regex
  if (path.length > 512 || /[\0-\x1f\x7f]/.test(path) || (path !== "" && path.split("/").some(isStrange)))
    throw new DestinationFault("Expected a path of at most 512 characters without empty parts, . and ..");
  return path;
}

function endpointOf(text: string): URL {
  const url = urlOf(/^https?:\/\//i.test(text) ? text : `https://${text}`);
  const isMore = url.pathname !== "/" || url.search !== "" || url.hash !== "";
  if (isMore || url.username !== "" || url.password !== "")
    throw new DestinationFault("Expected a host, such as https://s3.example.com, for endpoint");
  return url;
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url === null || url.hostname === "") throw new DestinationFault("Expected a complete URL");
  return url;
}

/** An endpoint with anything but a host and a port may have a secret. */
const plainEndpoint = /^(?:https?(?::|%3A)(?:\/|%2F){2})?(?:[\w.-]|:|%3A|\[|\]|%5B|%5D)+(?:\/|%2F)?$/i;

/** The destination in the form in which it was given, with all credentials hidden. */
export function shownDestination(text: string): string {
  const [start = "", query] = text.split("#", 1)[0]!.split(/\?(.*)/s);
  const plain = start.replace(/^([a-z][a-z\d+.-]*:\/\/)[^/]*@/i, "$1");
  if (query === undefined) return plain;
  const isBucket = /^s3:/i.test(plain);
  const parameters = query.split("&").map((pair) => {
    const [name = ""] = pair.split("=", 1);
    // A secret with an unescaped & goes on as a name.
    if (name === pair) return pair === "" ? "" : hidden;
    const isPlain =
      name === "endpoint"
        ? plainEndpoint.test(pair.slice(name.length + 1))
        : name === "region" || name === "sse";
    return isBucket && isPlain ? pair : `${name}=${hidden}`;
  });
  return `${plain}?${parameters.join("&")}`;
}

/** The location without credentials, by which destinations are compared. */
export function locationOf(destination: LogDestination): string {
  if (destination.kind === "https") return `${destination.url.origin}${destination.url.pathname}`;
  const { endpoint, bucket, path } = destination;
  return `s3 ${endpoint.origin} ${bucket}/${path}`;
}
