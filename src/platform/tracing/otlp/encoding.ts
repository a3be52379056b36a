import type { AttributeValue, KeptSpan } from "../spans/span.ts";

/** Names and values that describe this process. */
export type ProcessAttributes = Iterable<readonly [name: string, value: string]>;

/**
 * How an ExportTraceServiceRequest of OTLP/HTTP is written. Characters of its texts are bytes: they are below 0x100, and
 * written as Latin-1.
 */
export interface SpanEncoding {
  readonly contentType: string;
  /** Writes an attribute when it is set, so that a span holds only one text until it ends. */
  attribute(name: string, value: AttributeValue): string;
  /**
   * Writes a span at a position, and returns the position after it, or -1 if there is no room. `originMs` is the
   * wall-clock time at which `performance.now()` was 0.
   */
  write(span: KeptSpan, originMs: number, bytes: Buffer, at: number): number;
  /** The text before the spans, which have these many bytes. */
  head(spanBytes: number): string;
  readonly separator: string;
  readonly tail: string;
  /** The number of spans that the collector refused, according to its answer (ExportTracePartialSuccess). */
  rejected(answer: Buffer): number;
}
