import { expect, it } from "vitest";
import { Counter, Histogram, Registry } from "prom-client";
import { figuresOf } from "./figures.ts";

it("reads counts, quantiles and late alarms from the metrics", async () => {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "selvedge_edge_requests_total",
    help: "requests",
    labelNames: ["zone", "status", "protocol"],
    registers,
  });
  requests.inc({ zone: "a", status: 200, protocol: "h2" }, 90);
  requests.inc({ zone: "b", status: 502, protocol: "h2" }, 7);
  requests.inc({ zone: "b", status: "5xx", protocol: "h2" }, 3);
  const seconds = new Histogram({
    name: "selvedge_edge_request_duration_seconds",
    help: "seconds",
    labelNames: ["status"],
    buckets: [0.01, 0.1, 1],
    registers,
  });
  for (let i = 0; i < 90; i++) seconds.observe({ status: "2xx" }, 0.005);
  for (let i = 0; i < 10; i++) seconds.observe({ status: "5xx" }, 0.5);
  const late = new Histogram({
    name: "selvedge_alarm_lateness_seconds",
    help: "seconds",
    buckets: [0.1, 1, 10],
    registers,
  });
  for (const value of [0, 0.5, 5, 500]) late.observe(value);
  const figures = figuresOf(await registry.getMetricsAsJSON(), 1);
  expect(figures).toMatchObject({
    requests: 100,
    failedRequests: 10,
    p50Seconds: 0.01,
    p95Seconds: 1,
    lateAlarms: 2,
    scriptRuns: 0,
    diskFreeBytes: null,
  });
});
