import { cellHeaders } from "../../sandbox/protocol.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import type { QueueEvent, RequestEvent, ScheduledEvent, TailEvent } from "./event.ts";

/** The event of a request, from the request to the cell. */
export function requestEvent({ method, path, headers, cf }: CellRequest): RequestEvent {
  const value = (name: string): string | undefined => {
    const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
    return at < 0 ? undefined : headers[at + 1];
  };
  const url = `${value(cellHeaders.proto) ?? "http"}://${value("host") ?? ""}${path}`;
  const request = { url, method, headers: shownHeaders(headers) };
  return { request: cf === undefined ? request : { ...request, cf: JSON.parse(cf) as unknown } };
}

/** The event of a trigger other than a request; null for kinds that the clients do not know. */
export function triggerEvent(kind: string, body: string | Uint8Array): TailEvent["event"] {
  const event: unknown = JSON.parse(Buffer.from(body).toString());
  if (kind === "scheduled") return event as ScheduledEvent;
  if (kind !== "queue") return null;
  const { queue, messages } = event as { queue: string; messages: readonly unknown[] };
  return { queue, batchSize: messages.length } satisfies QueueEvent;
}

/** Headers that are redacted: watchers must not see visitors' credentials. */
const secretName = /auth|cookie|jwt|key|secret|token/i;

function shownHeaders(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (name.startsWith(cellHeaders.prefix)) continue;
    const before = headers[name];
    if (secretName.test(name)) headers[name] = "REDACTED";
    else headers[name] = before === undefined ? raw[i + 1]! : `${before}, ${raw[i + 1]!}`;
  }
  return headers;
}
