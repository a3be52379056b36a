import { createServer, type Server } from "node:http";
import { collectDefaultMetrics, Counter, Histogram, Registry, type Metric } from "prom-client";
import type { EdgeMetrics } from "../processes/protocol.ts";
import { sumOf } from "./metrics-sum.ts";
import { programVersion } from "../storage/program-version.ts";
import { BoundedLabel } from "./bounded-label.ts";
import { counters, gauges, metricPrefix, samplesBy } from "./instruments.ts";
import type { Observation } from "./observation.ts";
import { restartCounts, unawaited, uncaughtCounts } from "../util/uncaught.ts";

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Methods that have series of their own. Visitors may invent others, which share one. */
const knownMethods: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);

export { metricPrefix };
/** Gauges of prom-client whose names are those of counters. */
const misnamed = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];
/** Statuses that have series of their own. Origins may send any other one, and visitors may be able to choose it. */
const knownStatuses: ReadonlySet<number> = new Set([
  101, 200, 201, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415,
  416, 421, 422, 429, 431, 499, 500, 501, 502, 503, 504, 507, 508, 520, 521, 522, 523, 524, 525, 526, 530,
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
  readonly #zones = new BoundedLabel();

  constructor() {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    for (const name of misnamed) this.#registry.removeSingleMetric(name);
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
    this.#addProcess();
  }

  readonly edge = ({ zone = "", status, protocol, seconds }: Observation): void => {
    this.#edgeRequests.inc({ zone: this.#zones.of(zone), status: labelOf(status), protocol });
    this.#edgeSeconds.observe({ status: classOf(status) }, seconds);
  };

  readonly api = ({ method, status, seconds }: Observation): void => {
    const known = knownMethods.has(method) ? method : "other";
    this.#apiRequests.inc({ method: known, status: labelOf(status) });
    this.#apiSeconds.observe({ method: known }, seconds);
  };

  /** Adds metrics that a part of the platform counts itself. */
  register(metrics: readonly Metric[]): void {
    for (const metric of metrics) this.#registry.registerMetric(metric);
  }

  /** In the main process: reads the metrics of the node's edge processes. */
  others: () => Promise<EdgeMetrics[]> = async () => [];

  async text(): Promise<string> {
    return (await this.#sum()).metrics();
  }

  /** The values of all processes of the node. */
  async all(): Promise<EdgeMetrics> {
    return (await this.#sum()).getMetricsAsJSON();
  }

  async #sum(): Promise<Registry> {
    return sumOf(this.#registry, await this.others());
  }

  async values(): Promise<EdgeMetrics> {
    return this.#registry.getMetricsAsJSON();
  }

  /** Serves the metrics on a listener of their own, so that neither callers of the API nor visitors can see them. */
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

  /** Metrics of the program and of its processes. */
  #addProcess(): void {
    this.register([
      gauges(
        "build_info",
        "1; the labels are the versions of the program and of Node",
        ["version", "node"],
        () => [[{ version: programVersion, node: process.version }, 1]],
      ),
      counters(
        "process_restarts_total",
        "Processes and threads that were started again after they had failed",
        ["kind"],
        () => samplesBy("kind", restartCounts),
      ),
      counters(
        "uncaught_exceptions_total",
        "Uncaught exceptions and unhandled rejections; each is a bug",
        ["kind"],
        () => samplesBy("kind", uncaughtCounts),
      ),
    ]);
  }
}

const labelOf = (status: number): number | string => (knownStatuses.has(status) ? status : classOf(status));
const classOf = (status: number): string => `${Math.floor(status / 100)}xx`;
