import type { IncomingHttpHeaders } from "node:http";
import type { EdgeZone } from "../../edge/configuration/snapshot.ts";
import { encodeUtf8, type RequestDescription } from "../../rules/language.ts";
import { bodyPrefixBytes } from "../../rules/request/read-request.ts";

/** The assumed location of the visitor, in the form of the public API. */
export interface Geolocation {
  city?: string | undefined;
  continent?: string | undefined;
  is_eu_country?: boolean | undefined;
  iso_code?: string | undefined;
  latitude?: number | undefined;
  longitude?: number | undefined;
  postal_code?: string | undefined;
  region_code?: string | undefined;
  subdivision_2_iso_code?: string | undefined;
  timezone?: string | undefined;
}

/** A request that is traced instead of received. Texts are in UTF-8. */
export interface AskedRequest {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  cookies: Readonly<Record<string, string>>;
  body: Buffer | undefined;
  httpVersion: string;
  clientAddress: string;
  geolocation: Geolocation;
  botScore: number | undefined;
}

/** A request to a host of a zone. */
export interface TracedRequest {
  description: RequestDescription;
  host: string;
  /** With the port of the URL. */
  authority: string;
  zone: EdgeZone;
}

const namesOfGeolocation = {
  city: "city",
  continent: "continent",
  iso_code: "country",
  latitude: "latitude",
  longitude: "longitude",
  postal_code: "postalCode",
  region_code: "regionCode",
  subdivision_2_iso_code: "subdivision2Code",
  timezone: "timezone",
} as const satisfies Partial<Record<keyof Geolocation, string>>;

/** Properties of `request.cf` that a location sets. */
export function cfOf(location: Geolocation): Record<string, unknown> {
  const given = Object.entries(namesOfGeolocation).flatMap(([name, property]) => {
    const value = location[name as keyof typeof namesOfGeolocation];
    return value === undefined ? [] : [[property, typeof value === "number" ? String(value) : value]];
  });
  const { is_eu_country: isEu } = location;
  return { ...Object.fromEntries(given), ...(isEu === undefined ? {} : { isEUCountry: isEu ? "1" : "0" }) };
}

/** The headers of a traced request: names in lower case, without a second `host`, and with its cookies. */
export function headersOf({ url, headers, cookies, body }: AskedRequest): Record<string, string> {
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const pairs = Object.entries(cookies).map(([name, value]) => `${name}=${value}`);
  const given = Object.fromEntries(own.filter(([name]) => name !== "host"));
  const cookie = [...(given["cookie"] === undefined ? [] : [given["cookie"]]), ...pairs].join("; ");
  return {
    host: url.host,
    ...given,
    ...(cookie === "" ? {} : { cookie }),
    ...(body === undefined ? {} : { "content-length": String(body.length) }),
  };
}

/** The request as rules see it. `cf` computes what the edge knows about an address and its headers. */
export function describeRequest(
  asked: AskedRequest,
  cf: (headers: IncomingHttpHeaders, path: string) => Readonly<Record<string, unknown>>,
): RequestDescription {
  const headers = headersOf(asked);
  const path = asked.url.pathname + asked.url.search;
  const raw = asked.body?.toString("latin1");
  return {
    method: asked.method,
    url: path,
    headers: Object.entries(headers).flatMap(([name, value]) => [name, encodeUtf8(value)]),
    host: asked.url.hostname,
    tls: asked.url.protocol === "https:",
    ip: asked.clientAddress,
    httpVersion: asked.httpVersion,
    ...(asked.botScore === undefined ? {} : { botScore: asked.botScore }),
    cf: { ...cf(headers, path), ...cfOf(asked.geolocation) },
    body:
      raw === undefined
        ? undefined
        : { raw: raw.slice(0, bodyPrefixBytes), size: raw.length, truncated: raw.length > bodyPrefixBytes },
  };
}
