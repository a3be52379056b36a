import type { EdgeHandler } from "../request/handlers.ts";
import type { ZoneSettings } from "../../control/zone-settings/zone-settings.ts";

/** Redirects visitors to https when the zone requires it, and to http when its TLS is off. */
export function schemeHandler(
  settings: ZoneSettings,
  ports: () => Record<"http" | "https", number | undefined>,
): EdgeHandler {
  return ({ request, response, host, path, ray, zone }) => {
    if (zone === undefined) return false;
    const isTls = "encrypted" in request.socket;
    const isOff = settings.value(zone.id, "ssl") === "off";
    const wanted = isOff
      ? "http"
      : settings.value(zone.id, "always_use_https") === "on"
        ? "https"
        : undefined;
    if (wanted === undefined || (wanted === "https") === isTls) return false;
    // Authorities validate hosts over HTTP and follow redirects, and need the response before there is a
    // certificate.
    if (wanted === "https" && path.startsWith("/.well-known/acme-challenge/")) return false;
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
