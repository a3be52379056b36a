import type { Span } from "./span.ts";
import { readTraceContext } from "./trace-context.ts";
import { traceHeader, type Tracer } from "./tracer.ts";

interface To {
  /** Set for a request to another part of the platform, which then continues the trace. */
  tracer?: Tracer | undefined;
  /** Keeps the `traceparent` of another trace, which the code of an account has begun by itself. */
  keepsForeign?: boolean;
}

/** The headers of a request, a flat list, with those of a trace instead of those that it had. */
export function withTrace(
  headers: readonly string[],
  span: Span,
  { tracer, keepsForeign }: To = {},
): string[] {
  const isKept = keepsForeign === true && isForeign(headers, span);
  const sent: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (lengths.has(name.length) && isOfTrace(name.toLowerCase(), isKept)) continue;
    sent.push(name, headers[i + 1]!);
  }
  if (!isKept) {
    sent.push("traceparent", span.header);
    if (span.state !== undefined) sent.push("tracestate", span.state);
  }
  if (tracer !== undefined) sent.push(traceHeader, tracer.signed(span));
  return sent;
}

const lengths: ReadonlySet<number> = new Set(["traceparent".length, "tracestate".length, traceHeader.length]);
const isOfTrace = (name: string, isKept: boolean): boolean =>
  name === traceHeader || (!isKept && (name === "traceparent" || name === "tracestate"));

function isForeign(headers: readonly string[], { traceId }: Span): boolean {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "traceparent");
  const context = at < 0 ? undefined : readTraceContext(headers[at + 1], undefined);
  return context !== undefined && context.traceId !== traceId;
}
