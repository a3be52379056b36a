import { socketMetrics } from "./edge/origin/socket-metrics.ts";
import { smartRoutingMetrics } from "./edge/smart-routing/metrics.ts";
import { certificateMetrics } from "./edge/tls/certificates/metrics.ts";
import { Metrics } from "./platform/observability/metrics.ts";
import { blobMetrics } from "./platform/observability/blob-metrics.ts";
import { cellMetrics } from "./sandbox/metrics.ts";
import type { BlobServices } from "./blob-service.ts";
import type { Services } from "./services.ts";

type Sources = Pick<
  Services,
  "smartRouting" | "zones" | "certificates" | "certificatePacks" | "outbound" | "cellCounts"
> &
  Pick<BlobServices, "blobCounts">;

/** The metrics of all parts. Imported only where `metrics-listen` is set: nothing else needs prom-client. */
export function createMetrics(services: Sources): Metrics {
  const { smartRouting, zones, certificates, certificatePacks, outbound, cellCounts, blobCounts } = services;
  const zoneName = (id: string): string | undefined => zones.find(id)?.name;
  const metrics = new Metrics();
  metrics.register(smartRoutingMetrics(smartRouting, zoneName));
  metrics.register(cellMetrics(cellCounts));
  metrics.register(socketMetrics(() => outbound.sockets.counts));
  metrics.register(certificateMetrics(certificates, certificatePacks, zoneName));
  metrics.register(blobMetrics(blobCounts));
  return metrics;
}
