import type { Span } from "./span.ts";
import { readTraceContext } from "./trace-context.ts";
import { traceHeader, type Tracer } from "./tracer.ts";

interface To {
  /** Set for a request to another part of the platform, which then continues the trace. */
  tracer?: Tracer | undefined;
  /** Keeps the `traceparent` of another trace, which an account's code has begun itself. */
  keepsForeign?: boolean;
}

/** A copy of a request's headers, a flat list, in which those of a span's trace replace others. */
export function withTrace(headers: readonly string[], span: Span, to: To = {}): string[] {
  const sent = headers.slice();
  setTrace(sent, span, to);
  return sent;
}

/** Replaces the trace headers in a flat list by those of a span's trace. */
export function setTrace(headers: string[], span: Span, { tracer, keepsForeign }: To = {}): void {
  const isKept = keepsForeign === true && isForeign(headers, span);
  removeTrace(headers, isKept);
  if (!isKept) {
    headers.push("traceparent", span.header);
    if (span.state !== undefined) headers.push("tracestate", span.state);
  }
  if (tracer !== undefined) headers.push(traceHeader, tracer.signed(span));
}

/** Removes trace headers. Few requests have any, so entries are moved only after the first one. */
function removeTrace(headers: string[], isKept: boolean): void {
  let kept = 0;
  for (let i = 0; i < headers.length; i += 2) {
    if (isOfTrace(headers[i]!, isKept)) continue;
    if (kept !== i) {
      headers[kept] = headers[i]!;
      headers[kept + 1] = headers[i + 1]!;
    }
    kept += 2;
  }
  if (kept !== headers.length) headers.length = kept;
}

const parentLength = "traceparent".length;
const stateLength = "tracestate".length;
const ownLength = traceHeader.length;

function isOfTrace(name: string, isKept: boolean): boolean {
  const { length } = name;
  if (length !== parentLength && length !== stateLength && length !== ownLength) return false;
  const lower = name.toLowerCase();
  return lower === traceHeader || (!isKept && (lower === "traceparent" || lower === "tracestate"));
}

function isForeign(headers: readonly string[], { traceId }: Span): boolean {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "traceparent");
  const context = at < 0 ? undefined : readTraceContext(headers[at + 1], undefined);
  return context !== undefined && context.traceId !== traceId;
}
