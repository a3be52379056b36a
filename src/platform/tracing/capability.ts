import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { capability } from "../../capability.ts";
import { pairOf } from "../config/forms.ts";
import type { Config } from "../config/settings.ts";
import { programVersion } from "../storage/program-version.ts";
import { traceCurrent } from "./spans/current.ts";
import { declaration } from "./declaration.ts";
import type { ProcessAttributes, SpanEncoding } from "./otlp/encoding.ts";
import { Tracer } from "./spans/tracer.ts";

const closeMs = 2000;

/** Traces of requests through all parts of the platform. Its modules are loaded only if a collector is configured. */
export const tracing = capability({
  name: "tracing",
  processes: "all",
  declares: declaration,
  needs: [],
  async create({ config, logger }) {
    const url = collectorOf(config);
    if (url === undefined || config.tracesSampler === "always_off")
      return { tracer: undefined, spanExporter: undefined };
    const { SpanExporter } = await import("./span-exporter.ts");
    const spanExporter = new SpanExporter({
      url,
      headers: Object.fromEntries(config.otlpHeaders.map(pairOf)),
      encoding: await encodingOf(config),
      onState: (failure) => {
        if (failure === undefined) logger.info("the collector of traces accepts spans again");
        else logger.warn({ err: failure }, "spans are lost: the collector of traces does not accept them");
      },
    });
    traceCurrent();
    return { tracer: new Tracer(spanExporter, samplingOf(config)), spanExporter };
  },
  metrics: async ({ spanExporter }) =>
    spanExporter === undefined ? [] : (await import("./metrics.ts")).tracingMetrics(spanExporter),
  close: ({ spanExporter }) => spanExporter?.close(closeMs),
});

function collectorOf({ otlpEndpoint, otlpTracesEndpoint }: Config): string | undefined {
  if (otlpTracesEndpoint !== undefined) return otlpTracesEndpoint;
  return otlpEndpoint === undefined ? undefined : `${otlpEndpoint.replace(/\/$/, "")}/v1/traces`;
}

function samplingOf({ tracesSampler, tracesSamplerArg }: Config): { followsParent: boolean; ratio: number } {
  const ratio = tracesSampler.endsWith("always_on")
    ? 1
    : tracesSampler.endsWith("always_off")
      ? 0
      : Number(tracesSamplerArg);
  return { followsParent: tracesSampler.startsWith("parentbased"), ratio };
}

async function encodingOf(config: Config): Promise<SpanEncoding> {
  const resource = resourceOf(config);
  if ((config.otlpTracesProtocol ?? config.otlpProtocol) === "http/json")
    return (await import("./otlp/json.ts")).jsonEncoding(resource, programVersion);
  return (await import("./otlp/protobuf.ts")).protobufEncoding(resource, programVersion);
}

function resourceOf({ otelServiceName, otelResourceAttributes, colo }: Config): ProcessAttributes {
  const attributes = new Map<string, string>([
    ["service.name", "selvedge"],
    ["service.version", programVersion],
    ["service.instance.id", randomUUID()],
    ["host.name", hostname()],
    ["selvedge.colo", colo],
    ...otelResourceAttributes.map(pairOf),
  ]);
  if (otelServiceName !== undefined) attributes.set("service.name", otelServiceName);
  return attributes;
}
