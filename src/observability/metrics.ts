import { createServer, type Server } from "node:http";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { boundsMs, type Histogram as Times } from "../smart-routing/histogram.ts";
import type { AnswerCounts } from "../name-server/answer-counts.ts";
import type { Analytics } from "../smart-routing/analytics.ts";
import type { Certificates } from "../tls/certificates.ts";
import type { CertificatePacks } from "../tls/packs.ts";
import type { Observation } from "./observation.ts";

export interface MetricSources {
  smartRouting: Analytics;
  zoneName: (id: string) => string | undefined;
  /** Processes that run scripts: those of accounts, and of their customers. */
  cells: () => Record<"accounts" | "customers", { shared: number; all: number }>;
  certificates: Pick<Certificates, "expiries">;
  certificatePacks: Pick<CertificatePacks, "countFailing">;
}

const prefix = "selvedge_";
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Methods with a name of their own in the metrics: visitors may invent others. */
const knownMethods: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);

/** What the node counts, in the form that Prometheus reads. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #edgeRequests: Counter;
  readonly #edgeSeconds: Histogram;
  readonly #apiRequests: Counter;
  readonly #apiSeconds: Histogram;

  constructor(sources: MetricSources) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#edgeRequests = new Counter({
      name: `${prefix}edge_requests_total`,
      help: "Requests that the edge has answered",
      labelNames: ["zone", "status", "protocol"],
      registers,
    });
    this.#edgeSeconds = new Histogram({
      name: `${prefix}edge_request_duration_seconds`,
      help: "Time from a request's head to the end of its answer at the edge",
      labelNames: ["status"],
      buckets: durationBuckets,
      registers,
    });
    this.#apiRequests = new Counter({
      name: `${prefix}api_requests_total`,
      help: "Calls of the management API",
      labelNames: ["method", "status"],
      registers,
    });
    this.#apiSeconds = new Histogram({
      name: `${prefix}api_request_duration_seconds`,
      help: "Time from a call's head to the end of its answer at the management API",
      labelNames: ["method"],
      buckets: durationBuckets,
      registers,
    });
    this.#addSmartRouting(sources);
    this.#addCells(sources);
    this.#addCertificates(sources);
  }

  readonly edge = ({ zone = "", status, protocol, seconds }: Observation): void => {
    this.#edgeRequests.inc({ zone, status, protocol });
    this.#edgeSeconds.observe({ status: classOf(status) }, seconds);
  };

  readonly api = ({ method, status, seconds }: Observation): void => {
    const known = knownMethods.has(method) ? method : "other";
    this.#apiRequests.inc({ method: known, status });
    this.#apiSeconds.observe({ method: known }, seconds);
  };

  /** The name server's answers are counted where they are given. */
  addNameServer(count: () => Promise<AnswerCounts>): void {
    this.#registry.registerMetric(
      new Counter({
        name: `${prefix}dns_answers_total`,
        help: "Answers of the name server; those withheld have no code",
        labelNames: ["transport", "code"],
        registers: [],
        async collect() {
          const counts = await count();
          this.reset();
          for (const transport of ["udp", "tcp"] as const)
            for (const [code, answers] of counts[transport].entries())
              if (answers > 0) this.inc({ transport, code }, answers);
          this.inc({ transport: "udp", code: "" }, counts.withheld);
        },
      }),
    );
  }

  async text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** A listener of their own: who may call the API, or visits a site, need not see them. */
  createServer(): Server {
    return createServer((request, response) => {
      if (request.url !== "/metrics" || (request.method !== "GET" && request.method !== "HEAD")) {
        response.writeHead(404).end();
        return;
      }
      this.text().then(
        (text) => response.writeHead(200, { "content-type": this.#registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    });
  }

  #addSmartRouting({ smartRouting, zoneName }: MetricSources): void {
    const named = () =>
      [...smartRouting.entries()].flatMap(([id, { lifetime }]) => {
        const zone = zoneName(id);
        return zone === undefined ? [] : [{ id, zone, lifetime }];
      });
    this.#registry.registerMetric(
      timesMetric(
        "smart_routing_ttfb_seconds",
        "Time to first byte with smart routing, and of those kept direct",
        () =>
          named().flatMap(({ zone, lifetime }) =>
            (["smart", "direct"] as const).map((series) => ({
              labels: { zone, series },
              times: lifetime[series],
            })),
          ),
      ),
    );
    for (const [name, help, field] of [
      [
        "smart_routing_hedges_total",
        "Requests that smart routing has sent on a second path as well",
        "hedges",
      ],
      ["smart_routing_failures_total", "Requests that failed on every path", "failures"],
    ] as const) {
      this.#registry.registerMetric(
        new Counter({
          name: prefix + name,
          help,
          labelNames: ["zone"],
          registers: [],
          collect() {
            this.reset();
            for (const { zone, lifetime } of named()) this.inc({ zone }, lifetime[field]);
          },
        }),
      );
    }
    const paths = () =>
      named().flatMap(({ id, zone }) => smartRouting.pathsOf(id).map((report) => ({ zone, ...report })));
    const gauges: [
      name: string,
      help: string,
      value: (path: ReturnType<typeof paths>[number]) => number | undefined,
    ][] = [
      [
        "smart_routing_path_ttfb_seconds",
        "Time to first byte that is expected of a path",
        ({ ttfbMs }) => ttfbMs && ttfbMs / 1000,
      ],
      [
        "smart_routing_path_current",
        "Whether requests take the path at present",
        ({ isCurrent }) => Number(isCurrent),
      ],
      [
        "smart_routing_path_ejected",
        "Whether the path is set aside since it fails",
        ({ isEjected }) => Number(isEjected),
      ],
      [
        "smart_routing_path_requests",
        "Requests that were sent on the path since it is known",
        ({ requests }) => requests,
      ],
      [
        "smart_routing_path_failures",
        "Requests that failed on the path since it is known",
        ({ failures }) => failures,
      ],
    ];
    for (const [name, help, value] of gauges) {
      this.#registry.registerMetric(
        new Gauge({
          name: prefix + name,
          help,
          labelNames: ["zone", "path"],
          registers: [],
          collect() {
            this.reset();
            for (const path of paths()) {
              const known = value(path);
              if (known !== undefined) this.set({ zone: path.zone, path: path.path }, known);
            }
          },
        }),
      );
    }
  }

  #addCells({ cells }: MetricSources): void {
    this.#registry.registerMetric(
      new Gauge({
        name: `${prefix}cells`,
        help: "Processes that run scripts",
        labelNames: ["of", "kind"],
        registers: [],
        collect() {
          for (const [of, { shared, all }] of Object.entries(cells())) {
            this.set({ of, kind: "shared" }, shared);
            this.set({ of, kind: "solo_or_spare" }, all - shared);
          }
        },
      }),
    );
  }

  #addCertificates({ certificates, certificatePacks, zoneName }: MetricSources): void {
    this.#registry.registerMetric(
      new Gauge({
        name: `${prefix}certificate_expiry_timestamp_seconds`,
        help: "When a zone's certificate expires",
        labelNames: ["zone", "host"],
        registers: [],
        async collect() {
          this.reset();
          for (const { zoneId, hosts, expiresOn } of await certificates.expiries())
            this.set({ zone: zoneName(zoneId) ?? zoneId, host: hosts[0] ?? "" }, expiresOn / 1000);
        },
      }),
    );
    this.#registry.registerMetric(
      new Gauge({
        name: `${prefix}certificate_packs_failing`,
        help: "Certificate packs whose last attempt at a certificate failed",
        registers: [],
        async collect() {
          this.set(await certificatePacks.countFailing());
        },
      }),
    );
  }
}

const classOf = (status: number): string => `${Math.floor(status / 100)}xx`;

/** A histogram that is counted elsewhere, as one of Prometheus. */
function timesMetric(
  name: string,
  help: string,
  series: () => { labels: Record<string, string>; times: Times }[],
): Histogram {
  const metricName = prefix + name;
  const get = async () => ({
    name: metricName,
    help,
    type: "histogram",
    aggregator: "sum",
    values: series().flatMap(({ labels, times }) => {
      let below = 0;
      const buckets = boundsMs.map((bound, index) => {
        below += times.counts[index]!;
        return { metricName: `${metricName}_bucket`, labels: { ...labels, le: bound / 1000 }, value: below };
      });
      return [
        ...buckets,
        { metricName: `${metricName}_bucket`, labels: { ...labels, le: "+Inf" }, value: times.count },
        { metricName: `${metricName}_sum`, labels, value: times.sumMs / 1000 },
        { metricName: `${metricName}_count`, labels, value: times.count },
      ];
    }),
  });
  return { name: metricName, get } as unknown as Histogram;
}
