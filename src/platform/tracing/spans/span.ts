import { randomText } from "../../util/ids.ts";
import { traceParent, type TraceContext } from "./trace-context.ts";

/** The kinds of spans, by their numbers in OTLP. */
export const spanKinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;
export type SpanKind = keyof typeof spanKinds;
export type AttributeValue = string | number | boolean;

/** Receives spans that have ended. Must not throw. */
export interface SpanSink {
  add(span: Span): void;
}

const newTraceId = (): string => randomText(16, "hex");
const newSpanId = (): string => randomText(8, "hex");

/** Visitors choose paths and names of user agents. */
const textLengthMax = 1024;
/** A copy of the beginning: a slice would keep the whole text in memory while the span waits. */
const bounded = (text: string): string =>
  text.length <= textLengthMax ? text : Buffer.from(text.slice(0, textLengthMax)).toString();

/**
 * A part of a request's work. A span that is not sampled only carries the ids of its trace: it is its own child, and nothing
 * keeps it.
 */
export class Span implements TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly state: string | undefined;
  readonly kind: SpanKind;
  readonly startMs: number;
  name: string;
  /** 0 until it has ended. */
  endMs = 0;
  /** Names and values in turn. */
  readonly attributes: AttributeValue[] = [];
  link: TraceContext | undefined;
  /** Why it failed; undefined if it did not. */
  error: string | undefined;
  readonly #sink: SpanSink | undefined;

  private constructor(
    sink: SpanSink | undefined,
    name: string,
    kind: SpanKind,
    traceId: string,
    parent: TraceContext | undefined,
  ) {
    this.#sink = sink;
    this.name = name;
    this.kind = kind;
    this.traceId = traceId;
    this.spanId = newSpanId();
    this.parentId = parent?.spanId;
    this.state = parent?.state;
    this.startMs = sink === undefined ? 0 : performance.now();
  }

  /** The first span of this process in a trace. `sampled` decides whether it is kept. */
  static first(
    sink: SpanSink,
    name: string,
    kind: SpanKind,
    parent: TraceContext | undefined,
    sampled: (traceId: string) => boolean,
  ): Span {
    const traceId = parent?.traceId ?? newTraceId();
    return new Span(sampled(traceId) ? sink : undefined, name, kind, traceId, parent);
  }

  get isSampled(): boolean {
    return this.#sink !== undefined;
  }

  /** The value of the header `traceparent`. */
  get header(): string {
    return traceParent(this);
  }

  child(name: string, kind: SpanKind = "internal"): Span {
    return this.#sink === undefined ? this : new Span(this.#sink, name, kind, this.traceId, this);
  }

  set(name: string, value: AttributeValue | undefined): this {
    if (this.#sink !== undefined && value !== undefined)
      this.attributes.push(name, typeof value === "string" ? bounded(value) : value);
    return this;
  }

  /** Notes a failure. `error` is short and has few values, such as a code or a class. */
  fail(error: string): this {
    this.error ??= error;
    return this;
  }

  /** Ends it once; later calls have no effect. */
  end(): void {
    if (this.#sink === undefined || this.endMs !== 0) return;
    this.endMs = performance.now();
    this.#sink.add(this);
  }
}

/** Runs work within a child span, which ends with it. Without a span, only runs it. */
export async function within<T>(
  parent: Span | undefined,
  name: string,
  work: (span: Span | undefined) => Promise<T>,
  kind: SpanKind = "internal",
): Promise<T> {
  return parent?.isSampled === true ? during(parent.child(name, kind), work) : work(parent);
}

/** Runs work, and ends the span with it. Without a span, only runs it. */
export async function during<T>(
  span: Span | undefined,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  if (span === undefined) return work(span);
  try {
    return await work(span);
  } catch (error) {
    span.fail(errorName(error));
    throw error;
  } finally {
    span.end();
  }
}

/** The value of `error.type` for an exception: its code or class, and never its message, which may hold anything. */
export function errorName(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  const known = [code, name].find((each) => typeof each === "string" || typeof each === "number");
  return String(known ?? "error").slice(0, 100);
}
