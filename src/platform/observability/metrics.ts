import { createServer, type Server } from "node:http";
import { collectDefaultMetrics, Counter, Histogram, Registry, type Metric } from "prom-client";
import type { Observation } from "./observation.ts";
import { unawaited, uncaughtCounts } from "../util/uncaught.ts";

/** Every metric of ours begins with it. */
export const metricPrefix = "selvedge_";
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

/**
 * The metrics of this node, in the text format of Prometheus. Each part of the platform registers its own.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #edgeRequests: Counter;
  readonly #edgeSeconds: Histogram;
  readonly #apiRequests: Counter;
  readonly #apiSeconds: Histogram;

  constructor() {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#edgeRequests = new Counter({
      name: `${metricPrefix}edge_requests_total`,
      help: "Requests answered by the edge",
      labelNames: ["zone", "status", "protocol"],
      registers,
    });
    this.#edgeSeconds = new Histogram({
      name: `${metricPrefix}edge_request_duration_seconds`,
      help: "Time from a request's head to the end of its response at the edge",
      labelNames: ["status"],
      buckets: durationBuckets,
      registers,
    });
    this.#apiRequests = new Counter({
      name: `${metricPrefix}api_requests_total`,
      help: "Calls of the management API",
      labelNames: ["method", "status"],
      registers,
    });
    this.#apiSeconds = new Histogram({
      name: `${metricPrefix}api_request_duration_seconds`,
      help: "Time from a call's head to the end of its response at the management API",
      labelNames: ["method"],
      buckets: durationBuckets,
      registers,
    });
    this.#addUncaught();
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

  /** Adds metrics that a part of the platform counts itself. */
  register(metrics: readonly Metric[]): void {
    for (const metric of metrics) this.#registry.registerMetric(metric);
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
      unawaited(
        this.text().then(
          (text) => response.writeHead(200, { "content-type": this.#registry.contentType }).end(text),
          () => response.writeHead(500).end(),
        ),
      );
    });
  }

  #addUncaught(): void {
    this.#registry.registerMetric(
      new Counter({
        name: `${metricPrefix}uncaught_exceptions_total`,
        help: "Uncaught exceptions and unhandled rejections; each is a bug",
        labelNames: ["kind"],
        registers: [],
        collect() {
          this.reset();
          for (const [kind, count] of Object.entries(uncaughtCounts)) this.inc({ kind }, count);
        },
      }),
    );
  }
}

const classOf = (status: number): string => `${Math.floor(status / 100)}xx`;
