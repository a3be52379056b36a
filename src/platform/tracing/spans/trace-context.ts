/* W3C Trace Context: the headers `traceparent` and `tracestate`. */

/** A span of any process, as the headers describe it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
  /** The header `tracestate`, which is passed on unchanged. */
  state: string | undefined;
}

const pattern = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const parentLengthMax = 256;
const stateLengthMax = 4096;
const isState = /^[\t\x20-\x7e]*$/;

/** Reads the two headers. Undefined for a malformed `traceparent`; a malformed `tracestate` is left out. */
export function readTraceContext(
  parent: string | string[] | undefined,
  state: string | string[] | undefined,
): TraceContext | undefined {
  if (typeof parent !== "string" || parent.length > parentLengthMax) return undefined;
  const [, version, traceId, spanId, flags, more] = pattern.exec(parent) ?? [];
  // Later versions may add fields; version 00 has none.
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined))
    return undefined;
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags!, 16) & 1) === 1,
    state:
      typeof state === "string" && state.length <= stateLengthMax && isState.test(state) ? state : undefined,
  };
}

/** The header `traceparent` of a span. */
export const traceParent = ({ traceId, spanId, isSampled }: Omit<TraceContext, "state">): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
