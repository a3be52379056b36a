import { ConfigError } from "./config.ts";

/** The store for the bytes of images, assets and large values. */
export type BlobUrl = { kind: "files" } | { kind: "postgres" } | S3Url;
export interface S3Url {
  kind: "s3";
  bucket: string;
  /** "" or a text that ends in a slash. */
  prefix: string;
  /** Scheme, host and port; undefined for AWS. */
  endpoint: string | undefined;
  region: string | undefined;
}

const expected = "files, postgres or s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]";
const bucketPattern = /^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/;
const prefixPattern = /^[\w.-]{1,100}(\/[\w.-]{1,100}){0,4}$/;
const parameters = ["endpoint", "region"];

/** Parses `--blob-url`. Throws ConfigError; `source` names the setting in it. */
export function parseBlobUrl(text: string, source = "--blob-url"): BlobUrl {
  if (text === "files" || text === "postgres") return { kind: text };
  const wrong = (what: string): ConfigError => new ConfigError(`Expected ${what} for ${source}`);
  const url = URL.parse(text);
  if (url?.protocol !== "s3:") throw wrong(expected);
  if (url.username !== "" || url.password !== "")
    throw wrong("no credentials in the URL, but --blob-access-key-id and --blob-secret-access-key,");
  const unknown = [...url.searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) throw wrong(`only the parameters endpoint and region, not ${unknown},`);
  const bucket = url.hostname;
  if (!bucketPattern.test(bucket) || url.port !== "") throw wrong("the name of a bucket after s3://");
  const prefix = url.pathname.replaceAll(/^\/|\/$/g, "");
  if (prefix !== "" && (!prefixPattern.test(prefix) || /(^|\/)\.\.?(\/|$)/.test(prefix)))
    throw wrong("a prefix of letters, digits, -, _, . and /");
  const endpoint = url.searchParams.get("endpoint");
  const region = url.searchParams.get("region");
  if (region !== null && !/^[\w-]{1,64}$/.test(region)) throw wrong("a region of letters, digits and -");
  return {
    kind: "s3",
    bucket,
    prefix: prefix === "" ? "" : `${prefix}/`,
    endpoint: endpoint === null ? undefined : endpointOf(endpoint, wrong),
    region: region ?? undefined,
  };
}

function endpointOf(text: string, wrong: (what: string) => ConfigError): string {
  const url = URL.parse(text);
  const isOrigin =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.pathname === "/" &&
    url.search === "" &&
    url.username === "";
  if (!isOrigin) throw wrong("an endpoint such as https://s3.example.com, without a path,");
  return url.origin;
}
