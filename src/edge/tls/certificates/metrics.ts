import type { Metric } from "prom-client";
import { gauge, gauges } from "../../../platform/observability/instruments.ts";
import type { Certificates } from "./certificates.ts";
import type { CertificatePacks } from "./packs.ts";

/** Only this many certificates have series: those that expire first. */
const shownMax = 1000;

/** Metrics of certificates; `zoneName` is undefined for a zone that is deleted. */
export const certificateMetrics = (
  certificates: Pick<Certificates, "expiries">,
  certificatePacks: Pick<CertificatePacks, "countFailing">,
  zoneName: (id: string) => string | undefined,
): Metric[] => [
  gauges(
    "certificate_expiry_timestamp_seconds",
    "Expiry time of a zone's certificate, for the thousand that expire first",
    ["zone", "host"],
    async () => {
      const byZoneAndHost = new Map<string, { zone: string; host: string; seconds: number }>();
      for (const { zoneId, hosts, expiresOn } of await certificates.expiries()) {
        const [host = ""] = hosts;
        byZoneAndHost.set(`${zoneId} ${host}`, {
          zone: zoneName(zoneId) ?? zoneId,
          host,
          seconds: expiresOn / 1000,
        });
      }
      const soonest = [...byZoneAndHost.values()].toSorted((a, b) => a.seconds - b.seconds);
      return soonest.slice(0, shownMax).map(({ zone, host, seconds }) => [{ zone, host }, seconds]);
    },
  ),
  gauge(
    "certificate_packs_failing",
    "Certificate packs whose last attempt at a certificate failed",
    async () => certificatePacks.countFailing(),
  ),
];
