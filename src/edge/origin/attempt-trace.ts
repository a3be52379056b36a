import type { ClientRequest, IncomingMessage } from "node:http";
import { errorName, type Span } from "../../platform/tracing/spans/span.ts";
import { setTrace, withTrace } from "../../platform/tracing/spans/trace-headers.ts";
import { traceHeader, type Tracer } from "../../platform/tracing/spans/tracer.ts";
import { withoutSecrets } from "../../platform/access-log/redact.ts";
import type { Path } from "../configuration/route.ts";
import type { OriginRequest } from "./proxy.ts";

/** How the trace of a request continues beyond the edge. */
export interface OriginTrace {
  /** The span of the request; the span of each attempt is a child of it. */
  span: Span;
  name: "origin" | "fetch";
  /** Set if the destination is the edge of this platform, which continues the trace. */
  tracer?: Tracer | undefined;
  /** Whether the trace headers are already in the request's header list. Used only for traces that are not sampled. */
  isWritten?: boolean;
}

/** The trace of a request to an origin. */
export const originTrace = (span: Span | undefined): OriginTrace | undefined =>
  span === undefined ? undefined : { span, name: "origin", tracer: undefined, isWritten: false };

/** The same for a request without a relay. If its trace is not kept, headers are all that continues it: they are written now. */
export function directTrace(span: Span | undefined, headers: string[]): OriginTrace | undefined {
  if (span === undefined || span.isSampled) return originTrace(span);
  setTrace(headers, span);
  return undefined;
}

/** One attempt to send a request: its span, and the headers that name it. */
export interface TracedAttempt {
  /** Undefined if the trace is not sampled. */
  span: Span | undefined;
  headers: string[];
}

/** Begins the span of an attempt. Undefined without a trace. */
export function beginAttempt(
  origin: OriginRequest,
  path: Pick<Path, "address" | "tracer">,
): TracedAttempt | undefined {
  const { trace, method, headers, port, tls } = origin;
  if (trace === undefined) return undefined;
  if (!trace.span.isSampled) return unkeptAttempt(trace, headers, path.tracer);
  const { name, tracer = path.tracer } = trace;
  const span = trace.span.child(`${name} ${method}`, "client");
  const host = headers[1] ?? "";
  const scheme = tls === undefined ? "http" : "https";
  span
    .set("http.request.method", method)
    .set("url.full", withoutSecrets(`${scheme}://${host}${origin.path}`))
    .set("server.address", host)
    .set("server.port", port)
    .set("network.peer.address", path.address)
    .set("selvedge.relay", path.tracer === undefined ? undefined : true);
  return { span, headers: withTrace(headers, span, { tracer, keepsForeign: name === "fetch" }) };
}

/** Without a sampled trace, all attempts have the same headers, which are added once to the request's own list. */
function unkeptAttempt(trace: OriginTrace, headers: string[], relay: Tracer | undefined): TracedAttempt {
  const { span, name, tracer = relay } = trace;
  if (trace.isWritten !== true) setTrace(headers, span, { keepsForeign: name === "fetch" });
  trace.isWritten = true;
  return {
    span: undefined,
    headers: tracer === undefined ? headers : [...headers, traceHeader, tracer.signed(span)],
  };
}

/** Records the answer to an attempt in its span. */
export function attemptAnswered(span: Span, status: number): void {
  span.set("http.response.status_code", status);
  if (status >= 400) span.fail(String(status));
}

export function attemptFailed(span: Span, error: unknown): void {
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
