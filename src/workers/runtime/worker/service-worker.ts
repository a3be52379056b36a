import { env } from "cloudflare:workers";
import { passOn } from "../../../sandbox/worker/run.ts";
import type { Handlers } from "./script.ts";

/*
 * Scripts in the service worker format, which call `addEventListener("fetch", …)` instead of exporting
 * handlers. Their bindings are globals.
 */
type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };
interface Context {
  waitUntil(promise: Promise<unknown>): void;
  passThroughOnException(): void;
}

const native = globalThis.addEventListener;
const { apply } = Reflect;
const { defineProperty, entries } = Object;
const [NativeEvent, NativePromise] = [Event, Promise];
const kinds = ["fetch", "scheduled", "queue", "tail"] as const;

/** Prepares the globals before the script is evaluated. The result returns the handlers that were registered. */
export function listen(): () => Handlers {
  const listeners = new Map<string, Listener[]>();
  const add = (kind: string, listener: Listener, options?: never): void => {
    if (!kinds.some((each) => each === kind)) {
      apply(native, globalThis, [kind, listener, options]);
      return;
    }
    const known = listeners.get(kind);
    if (known === undefined) listeners.set(kind, [listener]);
    else known.push(listener);
  };
  const globals = { ...(env as Record<string, unknown>), addEventListener: add };
  for (const [name, value] of entries(globals))
    defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
  return () => {
    const handlers: Handlers = {};
    for (const [kind, all] of listeners)
      handlers[kind] =
        kind === "fetch"
          ? (request, _env, ctx) => respond(all, request as Request, ctx as Context)
          : (event, _env, ctx) => dispatch(all, kind, ctx as Context, membersOf(kind, event as object));
    return handlers;
  };
}

const call = (listener: Listener, event: Event): unknown =>
  typeof listener === "function" ? apply(listener, globalThis, [event]) : listener.handleEvent(event);

function eventOf(kind: string, ctx: Context, members: object): Event {
  const own = {
    waitUntil: (promise: Promise<unknown>) => ctx.waitUntil(promise),
    passThroughOnException: () => ctx.passThroughOnException(),
    ...members,
  };
  const event = new NativeEvent(kind);
  for (const [name, value] of entries(own))
    defineProperty(event, name, { value, writable: true, configurable: true, enumerable: true });
  return event;
}

/** The properties of the event: a tail event has its list under two names. */
const membersOf = (kind: string, event: object): object =>
  kind === "tail" ? { events: event, traces: event } : event;

/**
 * Resolves when everything passed to `waitUntil` has settled, because listeners have no other way to report
 * the end; rejects with the first failure. Promises passed later go to the native context.
 */
async function dispatch(
  listeners: readonly Listener[],
  kind: string,
  ctx: Context,
  members: object,
): Promise<void> {
  const waiting: Promise<unknown>[] = [];
  let isOver = false;
  const waitUntil = (given: unknown): void => {
    if (isOver) return ctx.waitUntil(given as Promise<unknown>);
    const promise = NativePromise.resolve(given);
    promise.catch(() => {}); // `settle` handles the rejection later
    waiting.push(promise);
  };
  const event = eventOf(kind, ctx, { ...members, waitUntil });
  let failure: { error: unknown } | undefined;
  const settle = async (what: () => unknown): Promise<void> => {
    try {
      await what();
    } catch (error) {
      failure ??= { error };
    }
  };
  for (const listener of listeners) await settle(() => call(listener, event));
  // Work may pass further promises to `waitUntil`.
  for (let i = 0; i < waiting.length; i++) await settle(() => waiting[i]);
  isOver = true;
  if (failure !== undefined) throw failure.error;
}

/** The first answer counts. Without an answer the request goes to the origin. */
async function respond(listeners: readonly Listener[], request: Request, ctx: Context): Promise<Response> {
  let answer: { response: Response | PromiseLike<Response> } | undefined;
  const respondWith = (response: Response | PromiseLike<Response>): void => {
    if (answer !== undefined) throw new TypeError("FetchEvent.respondWith() has already been called.");
    answer = { response };
  };
  const event = eventOf("fetch", ctx, { request, respondWith });
  for (const listener of listeners) {
    call(listener, event);
    if (answer !== undefined) return answer.response;
  }
  return passOn(request);
}
