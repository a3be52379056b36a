import type { EdgeHandler } from "../edge/handlers.ts";
import type { ZoneSettings } from "./zone-settings.ts";

/** Sends visitors to https where the zone wants it, and away from it where its TLS is off. */
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
    // An authority that checks a host asks over HTTP, and follows redirects; the answer is needed before there is a certificate.
    if (wanted === "https" && path.startsWith("/.well-known/acme-challenge/")) return false;
    const port = ports()[wanted];
    if (port === undefined) return false;
    // A visitor who says no port came through one that leads here from the usual one.
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
