import { internal } from "../cells/cell-folder.ts";
import type { CellRequest } from "../cells/exchange.ts";
import type { QueueEvent, RequestEvent, ScheduledEvent, TailEvent } from "./event.ts";

/** What a watched run was asked, from what the cell is sent. */
export function requestEvent({ method, path, headers, cf }: CellRequest): RequestEvent {
  const value = (name: string): string | undefined => {
    const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
    return at < 0 ? undefined : headers[at + 1];
  };
  const url = `${value(internal.proto) ?? "http"}://${value("host") ?? ""}${path}`;
  const request = { url, method, headers: shownHeaders(headers) };
  return { request: cf === undefined ? request : { ...request, cf: JSON.parse(cf) as unknown } };
}

/** What a watched event other than a request was about; null for a kind that those who watch do not know. */
export function triggerEvent(kind: string, body: string | Uint8Array): TailEvent["event"] {
  const event: unknown = JSON.parse(Buffer.from(body).toString());
  if (kind === "scheduled") return event as ScheduledEvent;
  if (kind !== "queue") return null;
  const { queue, messages } = event as { queue: string; messages: readonly unknown[] };
  return { queue, batchSize: messages.length } satisfies QueueEvent;
}

/** Whoever watches a script is not shown how its visitors prove who they are. */
const secretName = /auth|cookie|jwt|key|secret|token/i;

function shownHeaders(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (name.startsWith(internal.prefix)) continue;
    const before = headers[name];
    if (secretName.test(name)) headers[name] = "REDACTED";
    else headers[name] = before === undefined ? raw[i + 1]! : `${before}, ${raw[i + 1]!}`;
  }
  return headers;
}
