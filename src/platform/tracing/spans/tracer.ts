import { hash, timingSafeEqual } from "node:crypto";
import { idOf, newestIds, newestSampleNumber, newSpanId, newTraceParent, sampleNumberOf } from "./ids.ts";
import { KeptSpan, UnkeptSpan, type Span, type SpanKind, type SpanSink } from "./span.ts";
import { readTraceContext, traceParent, type TraceContext } from "./trace-context.ts";

/** Decides which traces are kept. */
export interface Sampling {
  /** Whether a trace that has a parent follows the parent's flag. */
  followsParent: boolean;
  /** The ratio of all other traces that are kept, from 0 to 1. */
  ratio: number;
}

/** The trace context of a request. A trusted one is continued; an untrusted one becomes a link of a new trace. */
export interface IncomingTrace {
  context: TraceContext | undefined;
  isTrusted: boolean;
}

/** The header that carries a span between parts of the platform: to its own edge, and to other nodes. */
export const traceHeader = "x-selvedge-trace";

/** The numbers of traces are below this. */
const sampleNumbers = 2 ** 52;
const macLength = 22;

/** Begins the spans that have no parent in this process. */
export class Tracer {
  readonly #sink: SpanSink;
  readonly #followsParent: boolean;
  /** Traces whose numbers are at or above this are not kept. The number is part of the id, so that all nodes decide alike. */
  readonly #sampleEnd: number;
  #key: string | undefined;

  constructor(sink: SpanSink, sampling: Sampling) {
    this.#sink = sink;
    this.#followsParent = sampling.followsParent;
    this.#sampleEnd = Math.ceil(sampling.ratio * sampleNumbers);
  }

  /** Sets the key, shared by all nodes, that signs the headers between parts of the platform. */
  signWith(key: string): void {
    this.#key = key;
  }

  begin(name: string, kind: SpanKind, { context, isTrusted }: IncomingTrace = noContext): Span {
    if (isTrusted && context !== undefined) return this.#continue(name, kind, context);
    const parent = newTraceParent();
    if (newestSampleNumber() >= this.#sampleEnd) return new UnkeptSpan(parent, undefined);
    const ids = newestIds(parent);
    const span = new KeptSpan(this.#sink, name, kind, ids.trace, undefined, undefined, ids.span);
    span.link = context;
    return span;
  }

  #continue(name: string, kind: SpanKind, parent: TraceContext): Span {
    const { traceId, isSampled, state } = parent;
    const id = newSpanId();
    const header = traceParent({ traceId, spanId: id.hex, isSampled: false });
    const isKept = this.#followsParent ? isSampled : sampleNumberOf(header) < this.#sampleEnd;
    if (!isKept) return new UnkeptSpan(header, state);
    return new KeptSpan(this.#sink, name, kind, idOf(traceId), idOf(parent.spanId), state, id);
  }

  /** The context of a request. `isTrusted` says whether its sender may choose the trace. */
  incoming(headers: Headers, isTrusted: () => boolean): IncomingTrace {
    if (!carriesTrace(headers)) return noContext;
    const signed = headers[traceHeader];
    const given = headers["traceparent"];
    if (typeof signed === "string") {
      const parent = this.#verified(signed);
      if (parent !== undefined) {
        const state = given === parent ? headers["tracestate"] : undefined;
        return { context: readTraceContext(parent, state), isTrusted: true };
      }
    }
    const context = readTraceContext(given, headers["tracestate"]);
    return { context, isTrusted: context !== undefined && isTrusted() };
  }

  /** The value of `traceHeader` for a span. Only parts of the platform may receive it. */
  signed({ header }: Span): string {
    return `${header}.${this.#mac(header)}`;
  }

  #verified(signed: string): string | undefined {
    const cut = signed.length - macLength;
    const parent = signed.slice(0, Math.max(cut - 1, 0));
    const given = Buffer.from(signed.slice(cut));
    const expected = Buffer.from(this.#mac(parent));
    return given.length === expected.length && timingSafeEqual(given, expected) ? parent : undefined;
  }

  /** SHA-3 of the key and the text is a MAC, because SHA-3 does not allow length extension (FIPS 202). */
  #mac(text: string): string {
    if (this.#key === undefined)
      throw new Error("Expected a signing key before a trace is passed to another node");
    return hash("sha3-256", `${this.#key}${text}`, "base64url").slice(0, macLength);
  }
}

/** Whether a request names a trace. Most do not. */
export const carriesTrace = (headers: Headers): boolean =>
  headers["traceparent"] !== undefined || headers[traceHeader] !== undefined;

type Headers = Readonly<Record<string, string | string[] | undefined>>;
const noContext: IncomingTrace = { context: undefined, isTrusted: false };
