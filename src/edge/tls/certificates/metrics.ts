import { Gauge, type Metric } from "prom-client";
import { metricPrefix } from "../../../platform/observability/metrics.ts";
import type { Certificates } from "./certificates.ts";
import type { CertificatePacks } from "./packs.ts";

/** Metrics of certificates; `zoneName` is undefined for a zone that is deleted. */
export function certificateMetrics(
  certificates: Pick<Certificates, "expiries">,
  certificatePacks: Pick<CertificatePacks, "countFailing">,
  zoneName: (id: string) => string | undefined,
): Metric[] {
  return [
    new Gauge({
      name: `${metricPrefix}certificate_expiry_timestamp_seconds`,
      help: "When a zone's certificate expires",
      labelNames: ["zone", "host"],
      registers: [],
      async collect() {
        this.reset();
        for (const { zoneId, hosts, expiresOn } of await certificates.expiries())
          this.set({ zone: zoneName(zoneId) ?? zoneId, host: hosts[0] ?? "" }, expiresOn / 1000);
      },
    }),
    new Gauge({
      name: `${metricPrefix}certificate_packs_failing`,
      help: "Certificate packs whose last attempt at a certificate failed",
      registers: [],
      async collect() {
        this.set(await certificatePacks.countFailing());
      },
    }),
  ];
}
