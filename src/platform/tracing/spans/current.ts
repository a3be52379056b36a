import { AsyncLocalStorage } from "node:async_hooks";
import type { Span } from "./span.ts";

/*
 * The span of the call of the API that code runs for, for storage, which does not know its callers. Requests at the edge
 * pass their spans as values, which is cheaper.
 */

let spans: AsyncLocalStorage<Span> | undefined;

/** From now on, the span of a call is known. */
export function traceCurrent(): void {
  spans ??= new AsyncLocalStorage();
}

/** Runs work for a span. */
export const forSpan = <T>(span: Span, work: () => T): T =>
  spans === undefined || !span.isSampled ? work() : spans.run(span, work);

/** The span that code runs for; undefined without one, or if it is not sampled. */
export const currentSpan = (): Span | undefined => spans?.getStore();
