import type { Metric } from "prom-client";
import { counters, gauges, samplesBy } from "../../../platform/observability/instruments.ts";
import type { ImageEngine } from "./engine.ts";

/** Metrics of the work on pictures. */
export const imageMetrics = (engine: Pick<ImageEngine, "results" | "load">): Metric[] => [
  counters(
    "image_transforms_total",
    "Pictures that were made, were refused because of the picture, its options or the load, or failed",
    ["result"],
    () => samplesBy("result", engine.results),
  ),
  gauges("image_jobs", "Pictures that are being made, and those that wait", ["state"], () =>
    samplesBy("state", engine.load),
  ),
];
