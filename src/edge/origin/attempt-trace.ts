import type { ClientRequest, IncomingMessage } from "node:http";
import { errorName, type Span } from "../../platform/tracing/spans/span.ts";
import { withTrace } from "../../platform/tracing/spans/trace-headers.ts";
import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import { withoutSecrets } from "../../platform/access-log/redact.ts";
import type { Path } from "../configuration/route.ts";
import type { OriginRequest } from "./proxy.ts";

/** How the trace of a request continues beyond the edge. */
export interface OriginTrace {
  /** The span that asks; each attempt is a child of it. */
  span: Span;
  name: "origin" | "fetch";
  /** Set if the destination is the edge of this platform, which continues the trace. */
  tracer?: Tracer | undefined;
}

/** The trace of a request to an origin. */
export const originTrace = (span: Span | undefined): OriginTrace | undefined =>
  span === undefined ? undefined : { span, name: "origin" };

/** One attempt to send a request: its span, and the headers that name it. */
export interface TracedAttempt {
  span: Span;
  headers: string[];
}

/** Begins the span of an attempt. Undefined without a trace. */
export function beginAttempt(
  origin: OriginRequest,
  path: Pick<Path, "address" | "tracer">,
): TracedAttempt | undefined {
  const { trace, method, headers, port, tls } = origin;
  if (trace === undefined) return undefined;
  const { name, tracer = path.tracer } = trace;
  const span = trace.span.child(`${name} ${method}`, "client");
  if (span.isSampled) {
    const host = headers[1] ?? "";
    const scheme = tls === undefined ? "http" : "https";
    span
      .set("http.request.method", method)
      .set("url.full", withoutSecrets(`${scheme}://${host}${origin.path}`))
      .set("server.address", host)
      .set("server.port", port)
      .set("network.peer.address", path.address)
      .set("selvedge.relay", path.tracer === undefined ? undefined : true);
  }
  return { span, headers: withTrace(headers, span, { tracer, keepsForeign: name === "fetch" }) };
}

/** Notes the answer to an attempt. */
export function attemptAnswered(span: Span, status: number): void {
  if (!span.isSampled) return;
  span.set("http.response.status_code", status);
  if (status >= 400) span.fail(String(status));
}

export function attemptFailed(span: Span, error: unknown): void {
  if (!span.isSampled) return;
  span.fail(errorName(error)).end();
}

/** The span of an upgrade ends with the answer: the connection itself may stay open for days. */
export function traceHandshake(upstream: ClientRequest, span: Span): void {
  const answered = ({ statusCode = 0 }: IncomingMessage): void => {
    attemptAnswered(span, statusCode);
    span.end();
  };
  upstream.once("response", answered).once("upgrade", answered);
  upstream.on("error", (error) => attemptFailed(span, error));
}
