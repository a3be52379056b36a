import { AsyncLocalStorage } from "node:async_hooks";
import type { Span } from "./span.ts";

/*
 * The span of the API call that code runs for. Storage uses it, because it does not know its callers.
 * Requests at the edge pass their spans as arguments, which is cheaper.
 */

let spans: AsyncLocalStorage<Span> | undefined;

/** Turns on `forSpan`, which has no effect before. */
export function traceCurrent(): void {
  spans ??= new AsyncLocalStorage();
}

/** Runs work with a current span. */
export const forSpan = <T>(span: Span, work: () => T): T =>
  spans === undefined || !span.isSampled ? work() : spans.run(span, work);

/** The current span; undefined if there is none or it is not sampled. */
export const currentSpan = (): Span | undefined => spans?.getStore();
