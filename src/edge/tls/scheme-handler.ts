import type { EdgeHandler } from "../request/handlers.ts";
import type { ZoneSettings } from "../../control/zone-settings/zone-settings.ts";

/** The scheme that a zone's settings redirect a request to; undefined if it may continue. */
export function redirectScheme(
  settings: ZoneSettings,
  zoneId: string,
  isTls: boolean,
  path: string,
): "http" | "https" | undefined {
  if (settings.value(zoneId, "ssl") === "off") return isTls ? "http" : undefined;
  if (isTls || settings.value(zoneId, "always_use_https") !== "on") return undefined;
  // Authorities validate hosts over HTTP and follow redirects, and need the response before there is a
  // certificate.
  return path.startsWith("/.well-known/acme-challenge/") ? undefined : "https";
}

/** Redirects visitors to https when the zone requires it, and to http when its TLS is off. */
export function schemeHandler(
  settings: ZoneSettings,
  ports: () => Record<"http" | "https", number | undefined>,
): EdgeHandler {
  return ({ request, response, host, path, ray, zone }) => {
    if (zone === undefined) return false;
    const wanted = redirectScheme(settings, zone.id, "encrypted" in request.socket, path);
    if (wanted === undefined) return false;
    const port = ports()[wanted];
    if (port === undefined) return false;
    // Without a port in the Host header, the visitor came through a proxy at the default port.
    const authority = /:\d+$/.test(request.headers.host ?? "") ? `${host}:${port}` : host;
    response.writeHead(301, {
      location: `${wanted}://${authority}${path}`,
      "content-length": "0",
      "cf-ray": ray,
    });
    request.resume();
    response.end();
    return true;
  };
}
