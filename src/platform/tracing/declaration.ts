import { declare } from "../../declaration.ts";
import { forms, pairOfName, type Form } from "../config/forms.ts";
import { choice } from "../config/setting.ts";

const ratio: Form = {
  expected: "a number from 0 to 1",
  accepts: (text) => /^(?:0|1|0?\.\d{1,9}|[01]\.0{1,9})$/.test(text),
};
const serviceName: Form = {
  expected: "1 to 255 printable characters",
  accepts: (text) => /^[\x20-\x7e]{1,255}$/.test(text),
};
const attribute = pairOfName(/^[a-z\d_.\-/]{1,128}$/i);
const protocols = ["http/protobuf", "http/json"] as const;
const header = pairOfName(/^[!#$%&'*+.^`|~\w-]{1,100}$/);

/** Traces of requests, sent to a collector. The names in the environment are those of OpenTelemetry. */
export const declaration = declare({
  settings: {
    otlpEndpoint: {
      kind: "text",
      form: forms.httpUrl,
      flag: "otlp-endpoint",
      env: "SELVEDGE_OTLP_ENDPOINT",
      alsoEnv: "OTEL_EXPORTER_OTLP_ENDPOINT",
      describe: "URL of a collector of OpenTelemetry; traces go to its path /v1/traces (default: no traces)",
    },
    otlpTracesEndpoint: {
      kind: "text",
      form: forms.httpUrl,
      flag: "otlp-traces-endpoint",
      env: "SELVEDGE_OTLP_TRACES_ENDPOINT",
      alsoEnv: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
      describe: "whole URL for traces, instead of otlp-endpoint",
    },
    otlpHeaders: {
      kind: "list",
      form: header,
      secret: true,
      flag: "otlp-headers",
      env: "SELVEDGE_OTLP_HEADERS",
      alsoEnv: "OTEL_EXPORTER_OTLP_HEADERS",
      default: [],
      describe: "headers for the collector, such as authorization=Bearer%20TOKEN",
    },
    otlpProtocol: {
      ...choice(protocols),
      flag: "otlp-protocol",
      env: "SELVEDGE_OTLP_PROTOCOL",
      alsoEnv: "OTEL_EXPORTER_OTLP_PROTOCOL",
      default: "http/protobuf",
      describe: "protocol of the collector",
    },
    otlpTracesProtocol: {
      ...choice(protocols),
      flag: "otlp-traces-protocol",
      env: "SELVEDGE_OTLP_TRACES_PROTOCOL",
      alsoEnv: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
      describe: "protocol of the collector for traces, instead of otlp-protocol",
    },
    tracesSampler: {
      ...choice([
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
      ]),
      flag: "traces-sampler",
      env: "SELVEDGE_TRACES_SAMPLER",
      alsoEnv: "OTEL_TRACES_SAMPLER",
      default: "parentbased_always_on",
      describe: "which traces are kept; with parentbased, the decision of a trusted caller comes first",
    },
    tracesSamplerArg: {
      kind: "text",
      form: ratio,
      flag: "traces-sampler-arg",
      env: "SELVEDGE_TRACES_SAMPLER_ARG",
      alsoEnv: "OTEL_TRACES_SAMPLER_ARG",
      default: "1",
      describe: "part of the traces that a ratio keeps, such as 0.01",
    },
    tracesTrustVisitors: {
      kind: "flag",
      flag: "traces-trust-visitors",
      env: "SELVEDGE_TRACES_TRUST_VISITORS",
      default: false,
      describe:
        "whether traces of all visitors and API callers are continued, instead of those from trusted-proxies only",
    },
    otelServiceName: {
      kind: "text",
      form: serviceName,
      flag: "otel-service-name",
      env: "SELVEDGE_OTEL_SERVICE_NAME",
      alsoEnv: "OTEL_SERVICE_NAME",
      describe: "service.name of all traces (default: selvedge)",
    },
    otelResourceAttributes: {
      kind: "list",
      form: attribute,
      flag: "otel-resource-attributes",
      env: "SELVEDGE_OTEL_RESOURCE_ATTRIBUTES",
      alsoEnv: "OTEL_RESOURCE_ATTRIBUTES",
      default: [],
      describe: "attributes of all traces of this process, such as deployment.environment.name=production",
    },
  },
});
