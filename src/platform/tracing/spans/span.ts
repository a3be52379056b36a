import { newSpanId, spanIdOf, traceIdOf, type Id } from "./ids.ts";
import { traceParent, type TraceContext } from "./trace-context.ts";

/** The kinds of spans, by their numbers in OTLP. */
export const spanKinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;
export type SpanKind = keyof typeof spanKinds;

/** A value of an attribute. */
export type AttributeValue = string | number | boolean;

/** Receives spans that have ended. Must not throw. */
export interface SpanSink {
  add(span: KeptSpan): void;
  /** Writes an attribute when it is set, so that a span holds only one text until it ends. */
  attribute(name: string, value: AttributeValue): string;
}

/** A part of a request's work. */
export interface Span extends TraceContext {
  /** The value of the header `traceparent`. */
  readonly header: string;
  child(name: string, kind?: SpanKind): Span;
  set(name: string, value: AttributeValue | undefined): this;
  /** Milliseconds since the span began; 0 if it is not kept. */
  readonly ageMs: number;
  /** Sets that the span began `msAgo` milliseconds ago, before this object was created. */
  began(msAgo: number): this;
  /** Records a failure. `error` is short and has few possible values, such as a code or a class. */
  fail(error: string): this;
  /** Ends the span. Further calls have no effect. */
  end(): void;
}

/** A span that is sent to the collector. */
export class KeptSpan implements Span {
  readonly isSampled = true;
  readonly trace: Id;
  readonly id: Id;
  readonly parent: Id | undefined;
  readonly state: string | undefined;
  readonly kind: SpanKind;
  startMs = performance.now();
  name: string;
  /** 0 until the span has ended. */
  endMs = 0;
  /** The attributes, as the sink has written them. */
  attributes = "";
  link: TraceContext | undefined;
  /** Why the span failed; undefined if it did not. */
  error: string | undefined;
  readonly #sink: SpanSink;

  /** Without a parent, the span is the first of its trace. */
  constructor(
    sink: SpanSink,
    name: string,
    kind: SpanKind,
    trace: Id,
    parent?: Id,
    state?: string,
    id = newSpanId(),
  ) {
    this.#sink = sink;
    this.name = name;
    this.kind = kind;
    this.trace = trace;
    this.id = id;
    this.parent = parent;
    this.state = state;
  }

  get traceId(): string {
    return this.trace.hex;
  }

  get spanId(): string {
    return this.id.hex;
  }

  get header(): string {
    return traceParent(this);
  }

  child(name: string, kind: SpanKind = "internal"): KeptSpan {
    return new KeptSpan(this.#sink, name, kind, this.trace, this.id, this.state);
  }

  set(name: string, value: AttributeValue | undefined): this {
    if (value !== undefined) this.attributes += this.#sink.attribute(name, value);
    return this;
  }

  get ageMs(): number {
    return performance.now() - this.startMs;
  }

  began(msAgo: number): this {
    this.startMs -= msAgo;
    return this;
  }

  fail(error: string): this {
    this.error ??= error;
    return this;
  }

  end(): void {
    if (this.endMs !== 0) return;
    this.endMs = performance.now();
    this.#sink.add(this);
  }
}

/** A span of a trace that is not kept. Its header tells other services so. `child` returns the span itself. */
export class UnkeptSpan implements Span {
  readonly isSampled = false;
  readonly ageMs = 0;
  readonly header: string;
  readonly state: string | undefined;

  constructor(header: string, state: string | undefined) {
    this.header = header;
    this.state = state;
  }

  get traceId(): string {
    return traceIdOf(this.header);
  }

  get spanId(): string {
    return spanIdOf(this.header);
  }

  child(): this {
    return this;
  }

  set(): this {
    return this;
  }

  began(): this {
    return this;
  }

  fail(): this {
    return this;
  }

  end(): void {}
}

/** Runs work within a child span, which ends with it. Without a span that is kept, only runs it. */
export async function inChildSpan<T>(
  parent: Span | undefined,
  name: string,
  work: (span: Span | undefined) => Promise<T>,
  kind: SpanKind = "internal",
): Promise<T> {
  return parent?.isSampled === true ? inSpan(parent.child(name, kind), work) : work(parent);
}

/** Runs work, and ends the span with it. Without a span, only runs it. */
export async function inSpan<T>(
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
